"""What compiled loops share: how they are compiled, random bits without a state, threads that wait for work."""
