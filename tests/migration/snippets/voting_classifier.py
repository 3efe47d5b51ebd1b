"""Soft votes of three classifiers."""

from sklearn.datasets import load_wine
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import scale
from sklearn.tree import DecisionTreeClassifier

X, y = load_wine(return_X_y=True)
members = [("lr", LogisticRegression()), ("nb", GaussianNB()), ("dt", DecisionTreeClassifier(random_state=0))]
vote = VotingClassifier(members, voting="soft", weights=[2, 1, 1]).fit(scale(X), y)
result = {"accuracy": vote.score(scale(X), y), "probability": vote.predict_proba(scale(X))}
