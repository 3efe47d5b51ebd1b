"""`python -m certifit` is the command `certifit`."""

from certifit.cli import main

main()
