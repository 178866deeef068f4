"""`hloom.ad_checkpoint`: names for values, policies and their answers, and the residuals of a backward pass.

`hloom.checkpoint` is the transformation.
"""

from .autodiff.policies import Offloadable, Recompute, Saveable, checkpoint_policies
from .autodiff.remat import checkpoint_name
from .autodiff.saved import print_saved_residuals
from .namespaces import publish as _publish

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
]

_publish(__name__)
