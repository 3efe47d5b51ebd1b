"""Latent semantic analysis: truncated SVD of TF-IDF, clustered."""

from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

texts = [
    "cat dog pet",
    "dog bone pet",
    "cat mouse pet",
    "share bond market",
    "bond stock market",
    "share price market",
]
tfidf = TfidfVectorizer().fit_transform(texts)
lsa = make_pipeline(TruncatedSVD(n_components=2, random_state=0), Normalizer(copy=False))
labels = KMeans(n_clusters=2, n_init=5, random_state=0).fit_predict(lsa.fit_transform(tfidf))
result = {"agreement": adjusted_rand_score([0, 0, 0, 1, 1, 1], labels), "share": lsa[0].explained_variance_ratio_}
