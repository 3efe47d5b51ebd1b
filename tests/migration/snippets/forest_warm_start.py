"""A forest grown further."""

from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

X, y = load_iris(return_X_y=True)
model = RandomForestClassifier(warm_start=True, oob_score=True, random_state=0, n_estimators=30)
errors = []
for n_estimators in (30, 60, 90):
    model.set_params(n_estimators=n_estimators).fit(X, y)
    errors.append(model.oob_score_)
# tolerance: 0.03
result = {"scores": errors, "trees": len(model.estimators_)}
