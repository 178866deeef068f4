"""Find where the matrices of one product of a batch begin, for the kernels of products."""

from __future__ import annotations

from collections.abc import Callable

from ..dot import Strides
from ..loops.expressions import ZERO, Expr, Name, times
from ..loops.writer import Writer


def batch_sizes(strides: Strides) -> dict[str, int]:
    """The values of the parameters that `starts_in_batch` makes, by name."""
    found: dict[str, int] = {}
    for d, dimension in enumerate(strides.batch):
        found[f"count{d}"] = dimension.count
        steps = (dimension.a_stride, dimension.b_stride, dimension.c_stride)
        found |= {f"step{d}_{name}": step for step, name in zip(steps, "abc", strict=True)}
    return found


def starts_in_batch(
    writer: Writer, dimensions: int, size: Callable[[str], Expr], rest: Name
) -> tuple[Expr, Expr, Expr]:
    """The first elements of the two operands and the result; `rest` is the number of the product in the batch.

    `size(name)` makes a parameter of the kernel.
    """
    starts: list[Expr] = [ZERO, ZERO, ZERO]
    here: Name = rest
    for d in reversed(range(dimensions)):
        count = size(f"count{d}")
        further = writer.assign(f"further{d}", here // count)
        index = writer.assign(f"index{d}", here - times(further, count))
        starts = [
            start + times(index, size(f"step{d}_{name}")) for start, name in zip(starts, "abc", strict=True)
        ]
        here = further
    a, b, c = (
        writer.assign(f"start_{name}", start) if dimensions else start
        for start, name in zip(starts, "abc", strict=True)
    )
    return a, b, c
