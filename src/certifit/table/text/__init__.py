"""Text that stands for something else: holes, numbers with separators and units, dates, yes and no."""
