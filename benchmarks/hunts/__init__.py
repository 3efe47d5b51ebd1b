"""Standing hunts for false proofs, refused honest fits and unwatched attributes: `python -m benchmarks hunt`."""
