"""Speed and memory beside the field's best, at equal quality: `python -m benchmarks list`."""
