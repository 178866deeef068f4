"""JAX's errors at run time: `hloom.experimental.error_check`, and the functions that set them in `jax.numpy`."""

from __future__ import annotations

from typing import Any

from hloom.tracer import dtypes

import hloom
from hloom.experimental import error_check


def _set_if_category(pred: Any, /, msg: str, category: str | None = None) -> None:
    if category not in (None, "oob"):
        raise ValueError(f"Invalid category: {category}")
    if category is None or hloom.config.jax_error_checking_behavior_oob == "raise":
        error_check.set_error_if(pred, msg)


def _set_if_nan(x: Any, /) -> None:
    if hloom.config.jax_error_checking_behavior_nan == "raise" and dtypes.is_floating(x.dtype):
        error_check.set_error_if(x != x, "NaN encountered")


def _set_if_zero(x: Any, /) -> None:
    if hloom.config.jax_error_checking_behavior_divide == "raise":
        error_check.set_error_if(x == 0, "Division by zero encountered")


PRIVATE: dict[tuple[str, str], Any] = {
    **{("error_check", name): getattr(error_check, name) for name in error_check.__all__},
    ("numpy.error", "error_checking_behavior"): error_check.error_checking_behavior,
    ("numpy.error", "_set_error_if_with_category"): _set_if_category,
    ("numpy.error", "_set_error_if_nan"): _set_if_nan,
    ("numpy.error", "_set_error_if_divide_by_zero"): _set_if_zero,
}
