"""What the fork server does before it forks: it makes every fit once, which imports and loads everything."""

import tempfile
from pathlib import Path

from benchmarks.faults import killed_programs

with tempfile.TemporaryDirectory() as _folder:
    for _name in killed_programs.MODELS:
        killed_programs.fitted_digest_of(str(Path(_folder) / "fit.ckpt"), _name)
