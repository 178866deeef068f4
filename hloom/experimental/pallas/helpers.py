"""Functions for the inside of kernels: conditions, loops, memory, hints."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import debug, lax
from ... import numpy as jnp
from ...autodiff.checkify import debug_check as _debug_check
from ...hlo.errors import JaxRuntimeError, UnsupportedError
from ...tracer.arrays.array import as_value
from ...tracer.arrays.layouts import Space
from ...tracer.aval import ShapedArray
from ...tracer.control_flow.branches import cond
from ...tracer.control_flow.scan import fori_loop
from ...tracer.core import Value
from ...tracer.dtypes import canonical_dtype
from ...tracer.references.refs import Ref, RefPart
from ...tracer.settings.config import Config
from ...tracer.settings.context import current_context
from ...tracer.settings.of_jax import OF_JAX
from ...tracer.settings.setting import InContext
from ...tracer.source import user_line
from ...tracer.tracer import Tracer
from ...tracer.trees import tree
from .block_spec import MemoryRef, MemorySpace
from .mapping import unwritten
from .utils import cdiv


def when(condition: Any, /) -> Callable[[Callable[[], None]], None]:
    """A decorator that calls the function where `condition` is true, a bool or a traced scalar.

    >>> from hloom.experimental import pallas as pl
    >>> def kernel(o_ref):
    ...     o_ref[...] = jnp.zeros_like(o_ref)
    ...     @pl.when(pl.program_id(0) == 1)
    ...     def _():
    ...         o_ref[...] = jnp.ones_like(o_ref)
    >>> block = pl.BlockSpec((2,), lambda i: (i,))
    >>> pl.pallas_call(kernel, hloom.ShapeDtypeStruct((4,), jnp.float32), grid=(2,), out_specs=block)()
    Array([0., 0., 1., 1.], dtype=float32)
    """

    def wrapped(function: Callable[[], None]) -> None:
        if not isinstance(condition, bool):
            cond(condition, function, lambda: None)
        elif condition:
            function()

    return wrapped


def loop(
    lower: Any, upper: Any, *, init_carry: Any = None, step: Any = 1, unroll: int | bool | None = None
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that calls the function for lower, lower + step, ... below upper. With `init_carry` the function
    takes the carry, too, and returns the next one; the last one is the result.

    >>> from hloom.experimental import pallas as pl
    >>> pl.loop(0, 5, init_carry=32)(lambda i, total: total + i)
    Array(42, dtype=int32, weak_type=True)
    """
    if any(isinstance(b, Tracer) for b in (lower, upper, step)):
        dtype = jnp.result_type(lower, upper, step)
        first, last, by = (lax.convert_element_type(b, dtype) for b in (lower, upper, step))
        zero: Any = lax.full((), 0, dtype)
        count = cdiv(last - first, by)
    else:
        first, last, by, zero = lower, upper, step, 0
        count = cdiv(*[int(b) for b in (last - first, by)])
        if not isinstance(first, int):
            dtype = as_value(first).dtype
            zero, count = lax.full((), 0, dtype), lax.full((), count, dtype)

    def decorator(body: Callable[..., Any]) -> Any:
        def one(index: Any, carry: Any) -> Any:
            at = first + index * by
            return body(at) if init_carry is None else body(at, carry)

        return fori_loop(zero, count, one, init_carry, unroll=unroll)

    return decorator


def run_scoped(f: Callable[..., Any], *types: Any, collective_axes: Any = (), **kw_types: Any) -> Any:
    """`f` called with references to new memory of these types; its result.

    >>> from hloom.experimental import pallas as pl
    >>> def f(ref):
    ...     ref[...] = jnp.ones(2)
    ...     return ref[...] + 1
    >>> hloom.jit(lambda: pl.run_scoped(f, pl.ANY((2,), jnp.float32)))()
    Array([2., 2.], dtype=float32)
    """
    if collective_axes:
        raise UnsupportedError("run_scoped with collective_axes shares memory between cores, which is for GPUs")
    args, keywords = tree.map(_new, (types, kw_types), is_leaf=lambda x: isinstance(x, MemoryRef))
    return f(*args, **keywords)


def _new(kind: Any) -> Ref:
    if isinstance(kind, type) or not hasattr(kind, "shape"):
        raise UnsupportedError(f"run_scoped: memory has a shape and a dtype, as pl.ANY(shape, dtype), not {kind!r}")
    return Ref(unwritten(ShapedArray(tuple(kind.shape), canonical_dtype(kind.dtype))))


def with_scoped(*types: Any, collective_axes: Any = (), **kw_types: Any) -> Callable[..., Any]:
    """A decorator: the function gets references to new memory, after the arguments of the call. See `run_scoped`.

    >>> from hloom.experimental import pallas as pl
    >>> @pl.with_scoped(pl.ANY((2,), jnp.float32))
    ... def f(x, ref):
    ...     ref[...] = x
    ...     return ref[...] * 2
    >>> hloom.jit(f)(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """

    def decorator(f: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*args: Any, **kwargs: Any) -> Any:
            function = functools.partial(f, *args, **kwargs)
            return run_scoped(function, *types, collective_axes=collective_axes, **kw_types)

        return inner

    return decorator


def run_state(f: Callable[[Any], None]) -> Callable[[Any], Any]:
    """The function of a pytree of arrays that calls `f` with references to copies of them; the arrays afterwards.

    >>> from hloom.experimental import pallas as pl
    >>> def f(refs):
    ...     x, y = refs
    ...     x[...] += y[...]
    >>> pl.run_state(f)((jnp.arange(2), jnp.ones(2, int)))[0]
    Array([1, 2], dtype=int32)
    """

    def run(x: Any) -> Any:
        references = tree.map(lambda leaf: Ref(as_value(leaf)), x)
        f(references)
        return tree.map(lambda ref: ref[...], references)

    return run


def empty(shape: Any, dtype: Any) -> Value:
    """An array for results: what is in it is not said (here: NaN, the least integer, False).

    >>> from hloom.experimental import pallas as pl
    >>> pl.empty((2,), jnp.float32)
    Array([nan, nan], dtype=float32)
    """
    return unwritten(ShapedArray(tuple(shape), canonical_dtype(dtype)))


def empty_like(x: Any) -> Any:
    """`empty` for each leaf of a pytree of objects with a shape and a dtype.

    >>> from hloom.experimental import pallas as pl
    >>> pl.empty_like(jnp.arange(2.0))
    Array([nan, nan], dtype=float32)
    """
    return tree.map(lambda leaf: empty(leaf.shape, leaf.dtype), x)


def empty_ref_like(x: Any) -> Ref:
    """A reference to new memory of a type. ValueError for anything else than a type.

    >>> from hloom.experimental import pallas as pl
    >>> pl.empty_ref_like(hloom.ShapeDtypeStruct((2,), jnp.int32)).shape
    (2,)
    """
    if isinstance(x, np.ndarray | Ref) or not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise ValueError(f"empty_ref_like does not support {type(x)}")
    return Ref(empty(x.shape, x.dtype))


def multiple_of(x: Any, values: Sequence[int] | int) -> Value:
    """`x`; a promise that it is a multiple of `values`, which is not used.

    >>> from hloom.experimental import pallas as pl
    >>> pl.multiple_of(jnp.int32(8), 4)
    Array(8, dtype=int32)
    """
    return as_value(x)


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Value:
    """1 / x. approx: of x rounded to bfloat16, as JAX's interpreter computes it. full_range: accepted.

    >>> from hloom.experimental import pallas as pl
    >>> pl.reciprocal(jnp.float32(4.0))
    Array(0.25, dtype=float32)
    """
    value = as_value(x)
    if approx:
        return jnp.reciprocal(value.astype(jnp.bfloat16)).astype(jnp.float32)
    return jnp.reciprocal(value)


def broadcast_to(a: Any, shape: Any) -> Value:
    """The array as one of `shape`.

    >>> from hloom.experimental import pallas as pl
    >>> pl.broadcast_to(jnp.int32(1), (2,))
    Array([1, 1], dtype=int32)
    """
    return jnp.broadcast_to(a, tuple(shape))


def debug_print(fmt: str, *args: Any) -> None:
    """Print ``fmt.format(*args)`` when a point of the grid comes to this line: the points run in order then.

    >>> from hloom.experimental import pallas as pl
    >>> def kernel(o_ref):
    ...     pl.debug_print("at {}", pl.program_id(0))
    >>> _ = pl.pallas_call(kernel, hloom.ShapeDtypeStruct((1,), jnp.int32), grid=(2,))()
    at 0
    at 1
    """
    debug.print(fmt, *args, skip_format_check=True)


def masked_load(ref: Any, mask: Any, other: Any) -> Value:
    """The values in a reference, or in a part of one, as JAX's interpreter reads them: a mask matters where `other` is
    given."""
    value = ref[...]
    if mask is None or other is None:
        return value  # type: ignore[no-any-return]
    found: Value = jnp.where(mask, value, other).astype(value.dtype)
    return found


def masked_store(ref: Any, value: Any, mask: Any) -> None:
    """Write a value where a mask says so."""
    if not isinstance(ref, Ref | RefPart):
        raise ValueError(f"Can only call `store` on a `Ref`: {ref}.")
    ref[...] = value if mask is None else jnp.where(mask, value, ref[...])


def debug_check(condition: Any, message: str) -> None:
    """An error, if `condition` is false: where the program is checked by `checkify`, and where `enable_debug_checks` is
    on. Then the points of the grid run in order, and a JaxRuntimeError has the message, and the line of the check. Else
    nothing.

    >>> from hloom.experimental import pallas as pl
    >>> def kernel(x_ref, o_ref):
    ...     pl.debug_check(x_ref[0] > 0, "the first element is not positive")
    ...     o_ref[...] = x_ref[...]
    >>> with pl.enable_debug_checks(True):
    ...     pl.pallas_call(kernel, jnp.zeros(2))(jnp.zeros(2))
    Traceback (most recent call last):
        ...
    hloom.errors.JaxRuntimeError: the first element is not positive ...
    """
    context = current_context()
    if context.pallas_enable_debug_checks and "user" not in context.checks:
        debug.callback(functools.partial(_check, message, user_line()), condition, ordered=True)
    else:
        _debug_check(condition, message)


def _check(message: str, line: str | None, condition: Any) -> None:
    if not condition:
        raise JaxRuntimeError(f"{message}\n  at {line or '<unknown>'}")


ANY = MemorySpace.ANY
HOST = Space.Host
enable_debug_checks: InContext[bool] = Config.jax_pallas_enable_debug_checks
enable_poison_buffers = OF_JAX["jax_pallas_poison_buffers"]
"""Accepted: memory that nothing has written always is NaN, the least integer or False."""
