"""What the examples' command lines share: where MNIST is, where the result goes, and words instead of a traceback."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from certifit.exceptions import DataError
from examples.mnist import Digits, load


def run(show: Callable[[Digits, Path], None], about: str, out: str, arguments: Sequence[str] | None = None) -> None:
    """Call `show(digits, out)` as the command line asks; input that cannot be used ends in a message and code 2."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--mnist", metavar="DIR", help="folder of MNIST's IDX files (default: CERTIFIT_MNIST)")
    parser.add_argument("--out", type=Path, default=Path(out), help=f"where the result goes (default: {out})")
    given = parser.parse_args(arguments)
    try:
        digits = load(given.mnist)
        print(f"{digits.words}: {len(digits.y)} images of {digits.shape[0]} x {digits.shape[1]} pixels")
        show(digits, given.out)
    except (DataError, OSError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from error
