"""Answers of models to rows left out, found without fitting them again: from sums, or by proof."""
