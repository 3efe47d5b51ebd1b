"""A forest and a tree on sparse counts of words."""

from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

text = ["good film", "bad film", "very good", "very bad", "good good film", "bad bad plot"] * 5
kind = [1, 0, 1, 0, 1, 0] * 5
tree = make_pipeline(CountVectorizer(), DecisionTreeClassifier(random_state=0)).fit(text, kind)
forest = make_pipeline(CountVectorizer(), RandomForestClassifier(20, random_state=0)).fit(text, kind)
new = ["a good plot", "a bad one", "good"]
result = {"tree": tree.predict(new), "forest": forest.predict(new)}
