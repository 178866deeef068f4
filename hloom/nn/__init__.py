"""`hloom.nn`: activations, softmax, one_hot, initializers. See `tracer/nn`."""

from .. import numpy as _numpy  # arrays get their methods, and backends are made known
from ..tracer.nn import *  # noqa: F403

del _numpy
