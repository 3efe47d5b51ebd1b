"""What all tests share: reproducible random examples, and the number of threads put back."""

import pytest
from hypothesis import settings

from certifit.core import set_threads

settings.register_profile("certifit", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("certifit")


@pytest.fixture
def threads():
    """`set_threads`, undone after the test."""
    yield set_threads
    set_threads(None)
