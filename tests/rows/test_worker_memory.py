"""Workers with Dask's setting of the C library use memory again."""

import os
import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource, numpy as np
from certifit.rows.sources.workers.worker_memory import reuse_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(250_000)  # 2 MB: 489 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
mapped = faults()
reuse_memory()
faults()
print(mapped, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is the GNU C library's")
def test_pages_are_not_fetched_again():
    settings = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536"}
    told = subprocess.run([sys.executable, "-c", SCRIPT], env=settings, capture_output=True, text=True, check=True)
    mapped, reused = map(int, told.stdout.split())
    assert reused < 50 < mapped
