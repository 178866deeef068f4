"""The group `steady`: a choice of the table's rows, and hloom beside itself in layouts and for other targets."""

from __future__ import annotations

from collections.abc import Callable

from . import layouts, targets
from .harness import Case
from .table import every as table

CHOSEN = (
    "mlp", "elementwise", "softmax", "sum-all", "sum-0", "sum-1", "dispatch", "dispatch-numpy", "loop", "gather",
    "scatter-add", "sort", "sort-rows", "argsort", "top-k", "convolution", "convolution-5x5", "max-pool",
    "grad-max-pool", "cumsum",
)  # fmt: skip
_ROWS = {name: case for group in table.GROUPS.values() for name, case in group.items()}
CASES: dict[str, Callable[[], Case]] = {name: _ROWS[name] for name in CHOSEN} | layouts.CASES | targets.CASES
