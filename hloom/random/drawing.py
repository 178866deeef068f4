"""Random draws outside of traced programs: a few stored programs for all small results.

A program for each new shape would cost tens of milliseconds, and most shapes are drawn once (the weights of a layer).
Element i of a draw depends on the key and i alone, so a smaller draw is the beginning of a larger one, but for one
setting, `jax_threefry_partitionable=False`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..autodiff.placed_results import computed_in
from ..hlo.support.memory_pressure import allocating
from ..hlo.support.tracebacks import hide
from ..tracer.arguments import ArgumentSpec
from ..tracer.arrays.array import Array, is_placed, with_storage
from ..tracer.aval import ShapedArray
from ..tracer.compound import Compound, argument_names
from ..tracer.settings.context import current_context
from .implementations import KeyDType, implementation

F = TypeVar("F", bound=Callable[..., Any])

SIZES = (16, 64, 256, 1024, 4096, 16384)
"""The numbers of elements that shared programs draw. Larger results have a program for each shape."""


def compound_draw(
    *, static: Sequence[str] = ("shape", "dtype", "out_sharding"), uses_keys: bool = False
) -> Callable[[F], F]:
    """As `compound`, for functions (key, ...) in which element i depends only on the key, on i and on scalars.

    The first argument of `static` is the shape, under any name. If its default is None, the parameters' shape is the
    default. Elements of the result may be arrays, as the words of keys are.
    """

    def decorate(fun: Callable[..., Any]) -> Any:
        return _Draw(fun, argument_names(fun, static), static[0], uses_keys)

    return decorate


class _Draw(Compound):
    """A function that draws. Made by `compound_draw`."""

    def __init__(self, fun: Callable[..., Any], static: ArgumentSpec, shape: str, uses_keys: bool) -> None:
        super().__init__(fun, static, uses_keys=uses_keys)
        names = fun.__code__.co_varnames[: fun.__code__.co_argcount]
        self._size = shape
        self._place = names.index(shape)
        defaults = dict(zip(reversed(names), reversed(fun.__defaults__ or ())))
        self._default = defaults.get(shape, ())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if kwargs.get("out_sharding") is not None:
                out_sharding = kwargs.pop("out_sharding")
                return computed_in(out_sharding, "a draw", lambda: self(*args, **kwargs))
            place = self._place
            given = args[place] if len(args) > place else kwargs.get(self._size, self._default)
            if given is None and self._default is None:
                sizes: Any = ()  # if the parameters are scalars
            else:
                sizes = (given,) if type(given) is int else tuple(given) if type(given) is list else given
            at_once = self._state.direct and self._state.recorder is None
            if self._uses_keys and current_context().debug_key_reuse:
                at_once = False  # the keys in a part of a result would not be known
            if at_once and type(sizes) is tuple and all(type(s) is int and s >= 0 for s in sizes):
                size = math.prod(sizes)
                drawn = next((n for n in SIZES if n >= size), None)
                if drawn is not None and sizes != (drawn,) and _can_be_cut(args, kwargs):
                    return self._cut(self._draw(drawn, args, kwargs), sizes, size)
            return super().__call__(*args, **kwargs)
        except BaseException as error:
            hide(error)
            raise

    def _draw(self, size: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        place = self._place
        if len(args) > place:
            return super().__call__(*args[:place], (size,), *args[place + 1 :], **kwargs)
        return super().__call__(*args, **{**kwargs, self._size: (size,)})

    def _cut(self, drawn: Array, shape: tuple[int, ...], size: int) -> Array:
        """The first elements, in the shape that was asked for."""
        storage = drawn._storage if drawn.aval.is_extended else drawn
        stored = (*shape, *storage.aval.shape[1:])
        view = allocating(storage._view[:size].reshape(stored).copy)
        cut = Array(ShapedArray(stored, storage.aval.dtype, storage.aval.weak_type), view)
        return with_storage(ShapedArray(shape, drawn.aval.dtype), cut) if drawn.aval.is_extended else cut


def _can_be_cut(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the key's generator draws element i from i alone, no other argument has dimensions, and the result has no
    place to be in."""
    if not args or type(args[0]) is not Array or is_placed(args[0]):
        return False
    dtype: Any = args[0].aval.dtype
    impl = dtype.impl if isinstance(dtype, KeyDType) else implementation(None)
    others = [a for a in (*args[1:], *kwargs.values()) if isinstance(a, Array | np.ndarray)]
    if not current_context().threefry_partitionable:
        return False
    return impl.by_index and not any(a.ndim for a in others)
