"""Reductions of windows that slide over an array, and the padding that a word such as "SAME" stands for.

Names and the meaning of arguments follow jax.lax.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..hlo.opcode import Opcode
from ..hlo.ops.window import ReduceWindowAttributes
from ..hlo.sizes import as_size, larger
from ..hlo.window import Window, WindowDimension, dilated
from ..tracer.arrays.array import as_value
from ..tracer.errors import OperandError
from ..tracer.ops import convert
from ..tracer.trees import tree
from .reduce import bind_reduction, reducer_of

Padding: TypeAlias = "str | Sequence[tuple[int, int]]"
"""Elements before and after each dimension, or "VALID", "SAME", "SAME_LOWER"."""


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """The padding before and after each dimension. "VALID": none. "SAME": so that there is a result for each stride,
    with an odd element at the end; "SAME_LOWER": with an odd element at the start.

    >>> lax.padtype_to_pads((8,), (3,), (2,), "SAME")
    [(0, 1)]
    """
    if not isinstance(padding, str):
        raise TypeError(f"Unknown padding type: {padding!r}")
    name = padding.upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(f"Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got {padding}.")
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = larger((-(-size // stride) - 1) * stride + window - size, 0)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if name == "SAME" else (more, less))
    return [(as_size(low), as_size(high)) for low, high in pads]


def window_of(
    name: str,
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int] | None,
    padding: Padding,
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> Window:
    """HLO's window over an array of dimensions `sizes`. OperandError if an argument has not one entry a dimension."""
    rank = len(sizes)

    def numbers(what: str, values: Sequence[int] | None) -> list[int]:
        found = [1] * rank if values is None else [as_size(v) for v in values]
        _check_length(name, what, found, rank)
        return found

    extents, steps = numbers("window_dimensions", window), numbers("window_strides", strides)
    base, holes = numbers("base_dilation", base_dilation), numbers("window_dilation", window_dilation)
    if isinstance(padding, str):
        around = padtype_to_pads(sizes, [dilated(e, h) for e, h in zip(extents, holes, strict=True)], steps, padding)
    else:
        try:
            around = [(as_size(low), as_size(high)) for low, high in padding]
        except (TypeError, ValueError):
            raise ValueError(
                f"{name}: the padding argument is a string or a sequence of (low, high) pairs, got {padding!r}"
            ) from None
        _check_length(name, "padding", around, rank)
    return tuple(
        WindowDimension(extents[d], steps[d], *around[d], base_dilation=base[d], window_dilation=holes[d])
        for d in range(rank)
    )


def _check_length(name: str, what: str, values: Sequence[Any], rank: int) -> None:
    if len(values) != rank:
        why = f"window and {what} must have the same number of dimensions, but got {rank} and {len(values)}"
        raise OperandError(f"{name} {why}", f"{name}_{what}")


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Arrays (a pytree, of equal shapes) reduced by `computation` in a window at each of its positions.

    `init_value` (of the same structure) is where each window begins; padding and holes take no part. `computation` must
    be associative, and may use constants only from outside.

    >>> lax.reduce_window(jnp.array([1.0, 5.0, 2.0, 7.0]), -jnp.inf, lax.max, (2,), (2,))
    Array([5., 7.], dtype=float32)
    """
    leaves, treedef = tree.flatten(operand)
    inits, init_treedef = tree.flatten(init_value)
    if treedef != init_treedef:
        raise OperandError(
            f"reduce_window: operands are {treedef}, but init_value {init_treedef}",
            "reduce-window_c1",
        )
    if not leaves:
        raise ValueError("reduce_window needs at least one operand")
    arrays = [as_value(a) for a in leaves]
    if any(shapes := [as_value(i).aval.shape for i in inits]):
        raise OperandError(
            f"reduce_window expected init_values to be scalars but init_values have shapes {shapes}.",
            "reduce-window_c3",
        )
    starts = [convert(as_value(i), a.aval.dtype, a.aval.weak_type) for i, a in zip(inits, arrays, strict=True)]
    window = window_of(
        "reduce_window", arrays[0].aval.shape, window_dimensions, window_strides, padding, base_dilation,
        window_dilation,
    )  # fmt: skip
    reducer = reducer_of("reduce_window", computation, treedef, [a.aval.dtype for a in arrays])
    attributes = ReduceWindowAttributes(window, reducer)
    return tree.unflatten(treedef, bind_reduction(Opcode.REDUCE_WINDOW, arrays, starts, attributes))
