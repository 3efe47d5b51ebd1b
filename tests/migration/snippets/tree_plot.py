"""A tree drawn, with names and colours."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier, export_graphviz, plot_tree

iris = load_iris()
tree = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(iris.data, iris.target)
fig, ax = plt.subplots(figsize=(6, 4))
boxes = plot_tree(tree, ax=ax, feature_names=iris.feature_names, class_names=list(iris.target_names), filled=True)
dot = export_graphviz(tree, out_file=None, filled=True, rounded=True, class_names=iris.target_names)
nodes = sum(box.get_text().count("samples") for box in boxes)
result = {"nodes": nodes, "edges": dot.count("->")}
