# Written by tools/stubs.py from certifit/registry.py.
from certifit.cluster.kmeans import KMeans as KMeans
from certifit.cluster.mini_batch_kmeans import MiniBatchKMeans as MiniBatchKMeans
from certifit.cluster.choose_k import choose_clusters as choose_clusters
from certifit.cluster.kmeans import k_means as k_means
from certifit.cluster.seeding import kmeans_plusplus as kmeans_plusplus
