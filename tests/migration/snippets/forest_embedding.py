"""Leaves of a forest as features of a linear model."""

from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

X, y = make_classification(400, random_state=10)
forest = RandomForestClassifier(max_depth=3, n_estimators=10, random_state=10).fit(X[:150], y[:150])
leaves = FunctionTransformer(lambda rows: forest.apply(rows), check_inverse=False)
model = make_pipeline(leaves, OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000))
model.fit(X[150:300], y[150:300])
# tolerance: 0.05
result = {"score": model.score(X[300:], y[300:]), "leaves": forest.apply(X[:3]).shape}
