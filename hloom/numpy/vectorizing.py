"""`vectorize`: a function of arrays of few dimensions, applied along all others by vmap.

Source: numpy.vectorize and its generalised signatures, as jax.numpy has them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from ..hlo.support.tracebacks import boundary
from ..lax import broadcast_shapes
from ..tracer.arrays.array import as_value
from ..tracer.core import Value
from ..tracer.ops import reshape
from ..tracer.source import function_line
from ..tracer.trees import tree
from .array_creation import asarray
from .promotion import check_ranks

_NAME = r"\w+"
_CORE = rf"\((?:{_NAME}(?:,{_NAME})*,?)?\)"
_LIST = rf"{_CORE}(?:,{_CORE})*"
_SIGNATURE = re.compile(rf"(?:{_LIST})?->{_LIST}")
Core = tuple[str, ...]
"""The names of the dimensions that one call of the function takes or returns."""


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """`pyfunc`, applied to each element of broadcast arrays; by vmap, so that it runs once.

    Args:
      pyfunc: takes arrays, returns one or a tuple of them.
      excluded: the arguments, by position or name, that are passed as they are.
      signature: the dimensions of each argument and result of one call, as in ``(m,n),(n)->(m)``; by default all
        arguments are scalars, or None, and results have any shape. The other dimensions are in front, and broadcast.

    Raises:
      ValueError: the signature has another form, or arrays or results do not fit it.
      TypeError: `excluded` has something else than positions and names.

    >>> clipped_dot = jnp.vectorize(lambda x, y: jnp.minimum(x @ y, 10), signature="(n),(n)->()")
    >>> clipped_dot(jnp.array([[1, 2], [3, 4]]), jnp.array([2, 2]))
    Array([ 6, 10], dtype=int32)
    """
    if any(not isinstance(e, str | int) for e in excluded):
        raise TypeError(f"jax.numpy.vectorize can only exclude integer or string arguments, but excluded={excluded!r}")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"excluded={excluded!r} contains negative numbers")
    cores = None if signature is None else _parsed(signature)

    @functools.wraps(pyfunc)
    @boundary
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        named = {k: v for k, v in kwargs.items() if k not in excluded}
        if named:
            raise ValueError(
                f"vectorize: {function_line(pyfunc)} got the keyword arguments {sorted(named)}: arrays are given by "
                "position, and other arguments are named in `excluded`"
            )
        places = [k for k in range(len(args)) if k not in excluded]
        fixed = {k: args[k] for k in range(len(args)) if k in excluded}

        def function(*arrays: Any) -> Any:
            given = dict(zip(places, arrays, strict=True)) | fixed
            return pyfunc(*[given[k] for k in range(len(args))], **kwargs)

        absent = {k for k in places if args[k] is None}
        if absent and cores is not None:
            raise ValueError(f"Cannot pass None at locations {absent} with signature={signature!r}")
        places = [k for k in places if k not in absent]
        fixed |= dict.fromkeys(absent)
        values = [asarray(args[k]) for k in places]
        inputs, outputs = ([()] * len(values), None) if cores is None else cores
        if len(inputs) != len(values):
            raise TypeError(f"wrong number of positional arguments: {signature} says {len(inputs)}, got {len(values)}")
        sizes: dict[str, int] = {}
        outer = [_outer(v, core, sizes, k) for k, (v, core) in enumerate(zip(values, inputs, strict=True))]
        check_ranks("vectorize", outer)
        full = broadcast_shapes(*outer) if outer else ()
        return _mapped(_checking(function, outputs, sizes), full, values, outer)

    return vectorized


def _parsed(signature: str) -> tuple[list[Core], list[Core]]:
    compact = signature.replace(" ", "")
    if not _SIGNATURE.fullmatch(compact):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    before, after = compact.split("->")
    return _cores(before), _cores(after)


def _cores(text: str) -> list[Core]:
    return [tuple(re.findall(_NAME, core)) for core in re.findall(_CORE, text)]


def _outer(value: Value, core: Core, sizes: dict[str, int], position: int) -> tuple[int, ...]:
    """The dimensions of an argument before the core dimensions; the sizes of the latter are recorded."""
    shape = value.aval.shape
    if len(shape) < len(core):
        raise ValueError(
            f"input with shape {shape} does not have enough dimensions for all core dimensions {core} of argument "
            f"{position}"
        )
    split = len(shape) - len(core)
    _note(core, shape[split:], sizes, f"argument {position}")
    return shape[:split]


def _note(core: Core, shape: Sequence[int], sizes: dict[str, int], what: str) -> None:
    for name, size in zip(core, shape, strict=True):
        wanted = int(name) if name.isdigit() else sizes.setdefault(name, size)
        if size != wanted:
            raise ValueError(f"inconsistent size for core dimension '{name}': {wanted} and {size} ({what})")


def _checking(function: Callable[..., Any], outputs: list[Core] | None, sizes: dict[str, int]) -> Callable[..., Any]:
    """`function`, with a check that its results fit the signature."""

    def checked(*arrays: Any) -> Any:
        result = function(*arrays)
        if outputs is None:
            return result
        if len(outputs) > 1 and not isinstance(result, tuple):
            raise TypeError(
                f"output must be a tuple, of {len(outputs)} arrays as in the signature, not a {type(result).__name__}"
            )
        results = result if isinstance(result, tuple) else (result,)
        if len(outputs) != len(results):
            raise TypeError(f"wrong number of output arguments: the signature says {len(outputs)}, got {len(results)}")
        found = [as_value(r) for r in results]
        for k, (value, core) in enumerate(zip(found, outputs, strict=True)):
            if value.aval.ndim != len(core):
                raise ValueError(f"output shape {value.aval.shape} does not match core dimensions {core} of result {k}")
            _note(core, value.aval.shape, dict(sizes), f"result {k}")
        return tuple(found) if isinstance(result, tuple) else found[0]

    return checked


def _mapped(
    function: Callable[..., Any], full: tuple[int, ...], values: list[Value], outer: list[tuple[int, ...]]
) -> Any:
    """`function` mapped over the dimensions `full`. Of each array, the dimensions that are repeated are removed."""
    has = []
    arrays = []
    for value, own in zip(values, outer, strict=True):
        added = len(full) - len(own)
        equal = [size == wanted for size, wanted in zip(own, full[added:], strict=True)]
        kept = [size for size, is_equal in zip(own, equal, strict=True) if is_equal]
        arrays.append(reshape(value, (*kept, *value.aval.shape[len(own) :])))
        has.append([False] * added + equal)
    from ..autodiff.vmap import vmap  # with it come all transformations: they are loaded when the first one is used

    mapped = function
    for k in reversed(range(len(full))):
        axes = tuple([0 if present[k] else None for present in has])
        mapped = vmap(mapped, in_axes=axes, axis_size=full[k])
    return tree.map(lambda leaf: leaf, mapped(*arrays))
