"""hloom: JAX's programming model for the CPU, in Python that a person can read."""
