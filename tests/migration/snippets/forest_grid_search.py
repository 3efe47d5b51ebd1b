"""A forest's depth and width by grid search."""

from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV

X, y = load_iris(return_X_y=True)
grid = {"max_depth": [1, 3], "max_features": [1, 2]}
search = GridSearchCV(RandomForestClassifier(n_estimators=20, random_state=0), grid, cv=3).fit(X, y)
# tolerance: 0.03
result = {"best": search.best_score_}
