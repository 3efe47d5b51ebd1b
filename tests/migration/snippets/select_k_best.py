"""Columns chosen by their F-value, in a pipeline."""

from sklearn.datasets import make_classification
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

X, y = make_classification(200, n_features=20, n_informative=3, n_redundant=0, random_state=42)
selection = SelectKBest(f_classif, k=3)
model = make_pipeline(selection, LinearSVC()).fit(X, y)
# tolerance: 0.02
result = {
    "scores": selection.scores_,
    "p": selection.pvalues_,
    "chosen": selection.get_support(),
    "accuracy": model.score(X, y),
}
