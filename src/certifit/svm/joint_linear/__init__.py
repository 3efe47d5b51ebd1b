"""One linear machine for all classes at once."""
