"""The command line: `certifit fit`, `audit`, `predict`, `demo`, `warm-up`."""

import os
import sys


def main() -> None:
    """Entry point of the `certifit` command."""
    from certifit.cli.app import app

    code: object = 0
    try:
        app()
    except SystemExit as end:
        code = end.code
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 1
    # Arrow's worker threads may be alive still; its teardown at exit then aborts the process now and then
    # (apache/arrow#39862), so that a good run would end with a bad code. Everything is written: end here.
    os._exit(code if isinstance(code, int) else int(code is not None))
