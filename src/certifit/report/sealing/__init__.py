"""How a page proves itself: what it carries, the script that recomputes it, and the digest of all it says."""
