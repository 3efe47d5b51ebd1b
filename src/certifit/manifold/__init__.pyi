# Written by tools/stubs.py from certifit/registry.py.
from certifit.manifold.locally_linear import LocallyLinearEmbedding as LocallyLinearEmbedding
