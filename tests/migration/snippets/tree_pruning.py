"""Cost-complexity pruning: leaves and accuracy along the path."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

X, y = load_breast_cancer(return_X_y=True)
path = DecisionTreeClassifier(random_state=0, max_depth=4).cost_complexity_pruning_path(X, y)
trees = [DecisionTreeClassifier(random_state=0, max_depth=4, ccp_alpha=a).fit(X, y) for a in path.ccp_alphas[-4:]]
# tolerance: 0.02
result = {
    "alphas": path.ccp_alphas[-4:],
    "leaves": [t.get_n_leaves() for t in trees],
    "depths": [t.get_depth() for t in trees],
    "score": np.array([t.score(X, y) for t in trees]),
}
