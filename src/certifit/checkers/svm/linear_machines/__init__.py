"""Linear support vector machines: their dual points and the adapters that read fitted ones."""
