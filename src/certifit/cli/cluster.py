"""A Dask cluster that a command works on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from certifit.exceptions import DataError


@contextmanager
def dask_cluster(address: str, seconds: float = 10.0) -> Iterator[None]:
    """Inside, sums over rows are computed by the workers of the scheduler at this address."""
    try:
        from distributed import Client
    except ImportError as error:
        raise DataError(
            got="--dask without Dask", wanted="dask.distributed", fix="pip install 'certifit[dask]'"
        ) from error
    try:
        # Dask would go on asking a client that never reached its scheduler: it must not become the default one.
        with Client(address, timeout=seconds, set_as_default=False):
            pass
        client = Client(address, timeout=seconds)
    except (OSError, ValueError) as error:
        raise DataError(
            got=f"--dask {address}, where no scheduler answers within {seconds:g} s ({type(error).__name__})",
            wanted="the address of a Dask scheduler",
            fix="It is what `dask scheduler` prints, tcp://host:8786 for instance.",
        ) from error
    with client:
        yield
