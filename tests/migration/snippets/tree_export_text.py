"""A small tree in words."""

from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier, export_text

iris = load_iris()
tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(iris.data, iris.target)
text = export_text(tree, feature_names=iris.feature_names, show_weights=True)
result = {"lines": text.count("\n"), "leaves": text.count("class:"), "probabilities": tree.predict_proba(iris.data)}
