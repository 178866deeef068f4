"""`hloom.nn`: activations, and functions for classifiers. Source for names and meaning: jax.nn."""

from . import activations, initializers, labels, normalization
from .activations import *
from .labels import *
from .normalization import *

__all__ = ["initializers"]
__all__ += activations.__all__
__all__ += labels.__all__
__all__ += normalization.__all__

del activations, labels, normalization
