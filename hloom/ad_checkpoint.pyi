from .autodiff.policies import (
    checkpoint_policies as checkpoint_policies, Offloadable as Offloadable, Recompute as Recompute,
    Saveable as Saveable,
)
from .autodiff.remat import checkpoint_name as checkpoint_name
from .autodiff.saved import print_saved_residuals as print_saved_residuals
