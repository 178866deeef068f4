"""jax._src.export.shape_poly: symbolic sizes."""

from typing import Any as _Any

from ....hlo.symbolic.expressions import Dim as _DimExpr
from ....hlo.symbolic.expressions import Precision as _Precision
from ....hlo.symbolic.expressions import Size as DimSize
from ....hlo.symbolic.expressions import as_dim as _as_dim

__all__ = ["DimSize", "_DimExpr", "_bounds_decision", "_convertible_to_int", "_ensure_poly", "all_dim_vars"]


def _bounds_decision(d: _Any, prec: _Any = _Precision.BEST) -> tuple[float, float]:
    """The least and the largest value of a size. `prec`: JAX's or hloom's precision, which have the same values."""
    return d.scope.bounds(d, _Precision(getattr(prec, "value", prec))) if isinstance(d, _DimExpr) else (int(d), int(d))


def _ensure_poly(p: _Any, operation_name: str, scope: _Any) -> _DimExpr:
    """A size as an expression."""
    return _as_dim(p, scope, operation_name)


def _convertible_to_int(p: _Any) -> bool:
    """Whether it is an integer."""
    return hasattr(p, "__index__")


def all_dim_vars(args_avals: _Any) -> list[str]:
    """The names of the variables in the shapes of arguments."""
    from ....hlo.symbolic.arguments import variables_of

    return variables_of([a.shape for a in args_avals])
