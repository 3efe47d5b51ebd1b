# Written by tools/stubs.py from certifit/registry.py.
from certifit.manifold.locally_linear import LocallyLinearEmbedding as LocallyLinearEmbedding
from certifit.manifold.embedding_function import locally_linear_embedding as locally_linear_embedding
