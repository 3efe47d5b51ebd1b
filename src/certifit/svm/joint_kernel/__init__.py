"""One kernel machine for all classes at once."""
