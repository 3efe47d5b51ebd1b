"""The score as a function of the number of rows."""

from sklearn.datasets import load_digits
from sklearn.model_selection import learning_curve
from sklearn.naive_bayes import GaussianNB

X, y = load_digits(return_X_y=True)
sizes, train, test = learning_curve(GaussianNB(), X[:500], y[:500], train_sizes=[0.3, 0.6, 1.0], cv=3)
result = {"sizes": sizes, "train": train, "test": test}
