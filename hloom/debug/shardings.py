"""Pictures of shardings: which part of an array lies on which device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..hlo.pictures.grid import coloured, grid_text, plain
from ..hlo.support.terminal import shows_colours
from ..notebooks.display import in_notebook, show
from ..notebooks.places import boxes_of, sharding_html
from ..tracer.arrays.array import Array, as_value
from ..tracer.errors import OperandError
from ..tracer.sharding.shardings import Sharding, default_sharding
from ..tracer.trees import tree


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
) -> None:
    """Print which part of an array of one or two dimensions lies on which device: a box for each part, as wide and as
    high as its size says.

    In a notebook it is a picture. use_color: where the output is a terminal, parts on different devices have different
    colours, unless NO_COLOR is set. scale: of the boxes' sizes. min_width, max_width: of a box, in characters.

    >>> hloom.debug.visualize_sharding((4, 2), hloom.sharding.SingleDeviceSharding(hloom.devices()[0]))
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    if not 1 <= len(shape) <= 2:
        raise ValueError(f"`visualize_sharding` only works for shapes with 1 and 2 dimensions, not {tuple(shape)}")
    boxes = boxes_of(sharding.devices_indices_map(tuple(shape)))
    part = sharding.shard_shape(tuple(shape))
    columns = len(boxes[0])
    widest = max(len(box.label) for row in boxes for box in row) + 2
    longest = max(shape) or 1
    asked = round(max_width * scale * part[-1] / longest) if columns > 1 else min_width
    width = max(widest, min(max(min_width, asked), max(max_width // columns - 1, 1)))
    height = 1 if len(shape) == 1 or len(boxes) == 1 else max(1, min(3, round(8 * scale * part[0] / longest)))
    if in_notebook():
        show(partial(grid_text, boxes, width, height), partial(sharding_html, sharding, tuple(shape)))
    else:
        print(grid_text(boxes, width, height, coloured if use_color and shows_colours() else plain))


def visualize_array_sharding(
    arr: Any, *, use_color: bool = True, scale: float = 1.0, min_width: int = 9, max_width: int = 80
) -> None:
    """Print which part of an array lies on which device, as `visualize_sharding`.

    >>> debug.visualize_array_sharding(jnp.zeros((4, 2)))
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    value = as_value(arr)

    def show(sharding: Sharding) -> None:
        visualize_sharding(
            value.aval.shape, sharding, use_color=use_color, scale=scale, min_width=min_width, max_width=max_width
        )

    inspect_array_sharding(value, callback=show)


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Call `callback` with the sharding of an array (of each, in a pytree): at once, also for a traced array; it
    reports the sharding of an array on the first device: which one it gets is known when the program is compiled.

    >>> debug.inspect_array_sharding(jnp.arange(3), callback=print)
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """
    if not callable(callback):
        raise OperandError(f"inspect_array_sharding: callback must be a function, not {callback!r}")
    for leaf in tree.leaves(value):
        array = as_value(leaf)
        callback(array.sharding if isinstance(array, Array) else default_sharding())
