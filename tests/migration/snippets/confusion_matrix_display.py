"""The picture of a confusion matrix."""

from sklearn.datasets import load_iris
from sklearn.metrics import ConfusionMatrixDisplay, classification_report
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
classifier = SVC(kernel="linear", C=0.01).fit(X_train, y_train)
display = ConfusionMatrixDisplay.from_estimator(classifier, X_test, y_test, normalize="true")
report = classification_report(y_test, classifier.predict(X_test), output_dict=True)
result = {"matrix": display.confusion_matrix, "f1": report["macro avg"]["f1-score"]}
