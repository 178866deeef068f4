"""`hloom.scipy.optimize`: minimization of functions of a vector."""

from ...namespaces import publish as _publish
from . import bfgs, lbfgs, line_search, minimization
from .minimization import (
    OptimizeResults as OptimizeResults,
    minimize as minimize,
)

__all__: list[str] = []
__all__ += minimization.__all__

del bfgs, lbfgs, line_search, minimization

_publish(__name__)
