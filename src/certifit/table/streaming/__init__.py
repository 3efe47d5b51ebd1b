"""Tables that are larger than memory: they are learnt in one pass over blocks, and fitted by passes over blocks."""
