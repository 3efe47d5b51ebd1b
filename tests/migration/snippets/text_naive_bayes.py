"""Words of short texts, counted and weighted, through naive Bayes and a linear machine."""

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

texts = [
    "the cat sat on the mat",
    "dogs chase cats",
    "stocks fell sharply today",
    "the market rose",
    "a dog and a cat",
    "shares and bonds fell",
    "my cat sleeps",
    "traders sold shares",
]
kind = ["pets", "pets", "money", "money", "pets", "money", "pets", "money"]
new = ["the cat and the dog", "shares rose today"]
bayes = make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, kind)
complement = make_pipeline(TfidfVectorizer(), ComplementNB()).fit(texts, kind)
logistic = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, kind)
machine = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LinearSVC()).fit(texts, kind)
assert [*machine.predict(new)] == ["pets", "money"]
result = {
    "bayes": bayes.predict_proba(new),
    "complement": complement.predict_proba(new),
    "logistic": logistic.predict_proba(new),
}
