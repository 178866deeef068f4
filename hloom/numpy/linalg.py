"""`hloom.numpy.linalg`: norms and products of matrices. See `tracer/numpy/linalg`."""

from ..tracer.numpy.linalg import *  # noqa: F403
