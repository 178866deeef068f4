"""Pictures of shardings: which part of an array lies on which device. There is one device, and all lies there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..tracer import tree
from ..tracer.array import Array, as_value
from ..tracer.devices import CPU
from ..tracer.errors import OperandError
from ..tracer.shardings import DEFAULT, Sharding
from ..tracer.source import user_line

_NAME = f"{CPU.platform.upper()} {CPU.id}"


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
) -> None:
    """Print which part of an array of one or two dimensions lies on which device: a box.

    use_color, scale: accepted; there is one box.

    >>> import hloom
    >>> hloom.debug.visualize_sharding((4, 2), hloom.sharding.SingleDeviceSharding(hloom.devices()[0]))
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    if not 1 <= len(shape) <= 2:
        raise ValueError(
            f"`visualize_sharding` only works for shapes with 1 and 2 dimensions, not {tuple(shape)}\n"
            f"  at {user_line()}"
        )
    sharding.shard_shape(tuple(shape))
    width = max(len(_NAME) + 2, min(min_width, max_width))
    print("\n".join([f"┌{'─' * width}┐", f"│{_NAME:^{width}}│", f"└{'─' * width}┘"]))


def visualize_array_sharding(
    arr: Any, *, use_color: bool = True, scale: float = 1.0, min_width: int = 9, max_width: int = 80
) -> None:
    """Print which part of an array lies on which device, as `visualize_sharding`: also of a
    traced array, while it is traced.

    >>> from hloom import debug, numpy as jnp
    >>> debug.visualize_array_sharding(jnp.zeros((4, 2)))
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    value = as_value(arr)

    def show(sharding: Sharding) -> None:
        visualize_sharding(value.aval.shape, sharding, min_width=min_width, max_width=max_width)

    inspect_array_sharding(value, callback=show)


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Call `callback` with the sharding of an array (of each, in a pytree): at once, of a traced array too.

    >>> from hloom import debug, numpy as jnp
    >>> debug.inspect_array_sharding(jnp.arange(3), callback=print)
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """
    if not callable(callback):
        raise OperandError(f"inspect_array_sharding: callback must be a function, not {callback!r}\n  at {user_line()}")
    for leaf in tree.leaves(value):
        array = as_value(leaf)
        callback(array.sharding if isinstance(array, Array) else DEFAULT)
