"""The universal functions that are objects, with `reduce`, `accumulate`, `outer`, `at` and `reduceat`; `frompyfunc`.

Which functions are objects: those of JAX. The library itself, and the operators of arrays, call the plain functions of
`binary_ufuncs.py` and `unary_ufuncs.py`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

from .. import lax
from ..hlo.support.tracebacks import boundaries, hide
from ..lax.movement import canonical_axis
from ..lax.reduce import keep_dimensions
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.arrays.operators import ArrayLike
from ..tracer.callers import leads_on
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.wrapping import SignatureOfCall
from . import binary_ufuncs as bi
from . import reductions as red
from . import unary_ufuncs as ew
from .array_creation import asarray
from .array_manipulation import moveaxis
from .promotion import (
    Axis,
    broadcast_to_shape,
    canonical_axes,
    check_arraylike,
    ensure_arraylike,
    ensure_arraylikes,
    mask,
    promote_inexact,
    to_dtype,
)
from .selection import where as choose
from .vectorizing import vectorize


class ufunc:
    """A function of single numbers that works on arrays, element by element. `frompyfunc` makes one.

    The binary ones with one result also reduce (`reduce`), reduce step by step (`accumulate`), reduce pieces
    (`reduceat`), and combine all pairs (`outer`). All update chosen elements (`at`).

    Args:
      func: of `nin` scalars, which returns `nout`.
      identity: the value that changes nothing, if there is one: it is the result of reducing no elements.
      call, reduce, accumulate, at, reduceat: better ways to do these than by `func`.

    >>> jnp.add.outer(jnp.array([1, 2]), jnp.array([10, 20])).tolist()
    [[11, 21], [12, 22]]
    """

    __signature__: SignatureOfCall = SignatureOfCall()
    _ufunc_of_library = False

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ) -> None:
        self.__doc__ = func.__doc__
        self.__name__: str = getattr(func, "__name__", type(func).__name__) if name is None else name
        self.__qualname__ = self.__name__
        self.__module__ = getattr(func, "__module__", __name__)
        self.__wrapped__ = func
        # No other wrapper has these names: functools.update_wrapper copies all that is in `__dict__`.
        self._ufunc_func = func
        self._ufunc_nin, self._ufunc_nout = operator.index(nin), operator.index(nout)
        self._ufunc_nargs = self._ufunc_nin if nargs is None else operator.index(nargs)
        self._ufunc_identity = identity
        self._ufunc_call = functools.partial(_vectorized, self) if call is None else call
        self._ufunc_ways = (call, reduce, accumulate, at, reduceat)
        self._ufunc_reduce, self._ufunc_accumulate = reduce, accumulate
        self._ufunc_at, self._ufunc_reduceat = at, reduceat

    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Any:
        try:
            if out is not None:
                raise self._no_argument("out")
            if where is not None:
                raise self._no_argument("where")
            if len(args) != self.nin:
                raise TypeError(f"{self.__name__} takes {self.nin} arrays, not {len(args)}")
            return self._ufunc_call(*args)
        except BaseException as error:
            hide(error)
            raise

    leads_on(__call__.__code__)

    @property
    def nin(self) -> int:
        """How many arguments it takes.

        >>> jnp.add.nin, jnp.negative.nin
        (2, 1)
        """
        return self._ufunc_nin

    @property
    def nout(self) -> int:
        """How many results it has.

        >>> jnp.add.nout
        1
        """
        return self._ufunc_nout

    @property
    def nargs(self) -> int:
        """How many arguments it takes in all.

        >>> jnp.add.nargs
        2
        """
        return self._ufunc_nargs

    @property
    def identity(self) -> Any:
        """The value that changes nothing, if there is one.

        >>> jnp.add.identity, jnp.multiply.identity, jnp.maximum.identity
        (0, 1, None)
        """
        return self._ufunc_identity

    @property
    def _func(self) -> Callable[..., Any]:
        """The function of scalars, under JAX's name."""
        return self._ufunc_func

    def _no_argument(self, argument: str, method: str = "") -> NotImplementedError:
        what = {"out": "arrays are immutable, so nothing can be written to one"}
        reason = what.get(argument, "elements that are left out would have no value: use hloom.numpy.where")
        return NotImplementedError(f"{argument} argument of {self.__name__}{method}: {reason}")

    def _check(self, method: str, out: None) -> None:
        if self.nin != 2:
            raise ValueError(f"{method} only supported for binary ufuncs, not {self.__name__}")
        if self.nout != 1:
            raise ValueError(f"{method} only supported for functions returning a single value")
        if out is not None:
            raise self._no_argument("out", f".{method}()")

    def _result_dtype(self, x: Value) -> Any:
        one = to_dtype(1, x.aval.dtype, False)
        return as_value(self._ufunc_call(*[one] * self.nin)).aval.dtype

    def reduce(
        self,
        a: ArrayLike,
        axis: Axis = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Value:
        """The elements along an axis (None: all; or several), combined from the first to the last.

        initial: a value that they are combined with at the start. where: the elements that take part; then there must
        be an `initial` or an identity.

        >>> jnp.bitwise_or.reduce(jnp.array([[1, 2, 3], [4, 5, 6]]), axis=1).tolist()
        [3, 7]
        """
        self._check("reduce", out)
        name = f"{self.__name__}.reduce"
        check_arraylike(name, a, *[v for v in (initial, where) if v is not None])
        if where is not None:
            mask(name, where)
            if self.identity is None and initial is None:
                raise ValueError(
                    f"reduction operation {self.__name__!r} does not have an identity, so to use a where mask one has "
                    "to specify 'initial'"
                )
        if self._ufunc_reduce is not None:
            found: Value = self._ufunc_reduce(
                a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where
            )
            return found
        axes = canonical_axes(axis, as_value(a).aval.ndim)
        return _reduced(a, initial, where, self, axes, dtype, bool(keepdims))

    def accumulate(self, a: ArrayLike, axis: int | None = 0, dtype: Any = None, out: None = None) -> Value:
        """At each place, the elements up to there along an axis, combined. None: of the flattened array.

        >>> jnp.maximum.accumulate(jnp.array([1, 3, 2, 5])).tolist()
        [1, 3, 3, 5]
        """
        self._check("accumulate", out)
        x = ensure_arraylike(f"{self.__name__}.accumulate", a)
        if axis is None and self._ufunc_accumulate is not None:
            x, axis = lax.reshape(x, (x.aval.size,)), 0
        if axis is None or isinstance(axis, tuple | list | range):
            raise ValueError(f"accumulate does not allow multiple axes: {axis}")
        place = canonical_axis(axis, x.aval.ndim)
        if self._ufunc_accumulate is not None:
            found: Value = self._ufunc_accumulate(x, place, dtype)
            return found
        return _accumulated(x, self, place, dtype)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Value:
        """The function of all pairs, [*A.shape, *B.shape].

        >>> jnp.multiply.outer(jnp.array([1, 2]), jnp.array([3, 4, 5])).tolist()
        [[3, 4, 5], [6, 8, 10]]
        """
        self._check("outer", None)
        x, y = ensure_arraylikes(f"{self.__name__}.outer", A, B)
        rows = lax.reshape(x, (*x.aval.shape, *[1] * y.aval.ndim))
        columns = lax.reshape(y, (*[1] * x.aval.ndim, *y.aval.shape)) if y.aval.ndim else y
        found: Value = self._ufunc_call(rows, columns)
        return found

    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Value:
        """A copy of `a` in which the elements at the indices are replaced by the function of them (and of b), once for
        each time an index is there.

        inplace: must be False, which says that the result is a copy: arrays are immutable.

        >>> jnp.add.at(jnp.array([0, 0, 0]), jnp.array([1, 1]), 5, inplace=False).tolist()
        [0, 10, 0]
        """
        if inplace:
            raise NotImplementedError(
                f"{self.__name__}.at() cannot change an array, because arrays are immutable\n  Write a = "
                f"hloom.numpy.{self.__name__}.at(a, indices, ..., inplace=False)."
            )
        given = [] if b is None else [b]
        check_arraylike(f"{self.__name__}.at", a, *given)
        if len(given) + 1 != self.nin:
            raise TypeError(f"{self.__name__}.at takes {self.nin - 1} arrays after the indices, not {len(given)}")
        where = (
            tuple([asarray(i) if isinstance(i, list) else i for i in indices])
            if isinstance(indices, tuple)
            else (asarray(indices) if isinstance(indices, list) else indices)
        )
        return _updated(as_value(a), where, given, self)

    def reduceat(self, a: ArrayLike, indices: Any, axis: int | None = 0, dtype: Any = None, out: None = None) -> Value:
        """The reductions of the elements from each index to the next one, the last to the end. Where the next index is
        not larger, the element itself.

        >>> jnp.add.reduceat(jnp.array([1, 2, 3, 4]), jnp.array([0, 3])).tolist()
        [6, 4]
        """
        self._check("reduceat", out)
        places = asarray(indices) if isinstance(indices, list | tuple) else indices
        x, starts = ensure_arraylikes(f"{self.__name__}.reduceat", a, places)
        if not x.aval.shape:
            raise ValueError(f"reduceat: a must have 1 or more dimension, not {x.aval.str_short()}")
        if starts.aval.ndim != 1:
            raise ValueError(f"reduceat: indices must be one-dimensional, not {starts.aval.str_short()}")
        if axis is None or isinstance(axis, tuple | list | range):
            raise ValueError(f"reduceat requires a single integer axis, not {axis}")
        if not dtypes.is_integer(starts.aval.dtype):
            raise OperandError(f"reduceat: indices must be integers, not {starts.aval.str_short()}",
                               "reduceat")  # fmt: skip
        place = canonical_axis(axis, x.aval.ndim)
        if self._ufunc_reduceat is not None:
            found: Value = self._ufunc_reduceat(x, starts, axis=place, dtype=dtype)
            return found
        return _reduced_pieces(x, starts, self, place, dtype)

    def _key(self) -> tuple[Any, ...]:
        return self._ufunc_func, self.__name__, self.identity, self.nin, self.nout, self.nargs

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ufunc) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> Any:
        if self._ufunc_of_library:
            return self.__qualname__
        ways = dict(zip(("call", "reduce", "accumulate", "at", "reduceat"), self._ufunc_ways, strict=True))
        options = {"name": self.__name__, "nargs": self.nargs, "identity": self.identity, **ways}
        return functools.partial(ufunc, **options), (self._ufunc_func, self.nin, self.nout)

    def __repr__(self) -> str:
        return f"<hloom.numpy.ufunc {self.__name__!r}>"


boundaries(ufunc, "reduce", "accumulate", "outer", "at", "reduceat")


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A ufunc that applies a function of `nin` scalars, which has `nout` results, to each element, by vmap.

    identity: the value that changes nothing, if there is one.

    >>> larger = jnp.frompyfunc(lambda x, y: jnp.where(x > y, x, y), 2, 1)
    >>> int(larger.reduce(jnp.array([3, 9, 4])))
    9
    """
    return ufunc(func, nin, nout, identity=identity)


class BinaryUfunc(ufunc):
    """A ufunc of the library, of two arguments and one result."""

    _ufunc_of_library = True

    def __call__(  # type: ignore[override]  # a ufunc of users has any number of arguments
        self, x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None
    ) -> Value:
        try:
            if out is not None:
                raise self._no_argument("out")
            if where is not None:
                raise self._no_argument("where")
            return self._ufunc_call(x1, x2)  # type: ignore[no-any-return]
        except BaseException as error:
            hide(error)
            raise

    leads_on(__call__.__code__)


class UnaryUfunc(ufunc):
    """A ufunc of the library, of one argument and one result."""

    _ufunc_of_library = True

    def __call__(  # type: ignore[override]  # a ufunc of users has any number of arguments
        self, x: ArrayLike, /, *, out: None = None, where: None = None
    ) -> Value:
        try:
            if out is not None:
                raise self._no_argument("out")
            if where is not None:
                raise self._no_argument("where")
            return self._ufunc_call(x)  # type: ignore[no-any-return]
        except BaseException as error:
            hide(error)
            raise

    leads_on(__call__.__code__)


# ---- the general ways, each one program for a ufunc and the types of its arguments


def _vectorized(f: ufunc, *args: ArrayLike) -> Any:
    check_arraylike(f.__name__, *args)
    return _vectorized_program(f, list(args))


@compound(static=("f",))
def _vectorized_program(f: ufunc, args: list[Any]) -> Any:
    return vectorize(f._ufunc_func)(*args)


@compound(static=("f", "axes", "dtype", "keepdims"))
def _reduced(
    a: ArrayLike, initial: Any, where: Any, f: ufunc, axes: tuple[int, ...], dtype: Any, keepdims: bool
) -> Value:
    x = as_value(a)
    shape = x.aval.shape
    target = f._result_dtype(x) if dtype is None else dtypes.requested_dtype(dtype, f.__name__)
    rows = _flattened(x, axes)
    chosen = None if where is None else _flattened(broadcast_to_shape(as_value(where), shape), axes)
    start = f.identity if initial is None else initial
    count, rest = rows.aval.shape[0], rows.aval.shape[1:]
    if start is None and not count:
        raise ValueError(f"zero-size array to reduction operation {f.__name__} which has no identity")
    if not count:
        result = broadcast_to_shape(to_dtype(start, target, False), rest)
        return keep_dimensions(result, shape, axes) if keepdims else result
    rows = to_dtype(rows, target, False)

    def step(k: Value, found: Value) -> Value:
        combined = to_dtype(f._ufunc_call(found, rows[k]), target, False)
        return combined if chosen is None else lax.select(chosen[k], combined, found)

    if start is None:
        first, begin = rows[0], 1
    else:
        first, begin = broadcast_to_shape(to_dtype(start, target, False), rest), 0
    result = lax.fori_loop(begin, count, step, first)
    return keep_dimensions(result, shape, axes) if keepdims else result


def _flattened(x: Value, axes: tuple[int, ...]) -> Value:
    """The axes in front, as one dimension."""
    moved = moveaxis(x, axes, tuple(range(len(axes))))
    return lax.reshape(moved, (math.prod(moved.aval.shape[: len(axes)]), *moved.aval.shape[len(axes) :]))


@compound(static=("f", "axis", "dtype"))
def _accumulated(a: ArrayLike, f: ufunc, axis: int, dtype: Any) -> Value:
    x = as_value(a)
    target = f._result_dtype(x) if dtype is None else dtypes.requested_dtype(dtype, f.__name__)
    rows = moveaxis(to_dtype(x, target, False), axis, 0)
    if not rows.aval.size:
        return to_dtype(x, target, False)

    def step(found: Value, row: Value) -> tuple[Value, Value]:
        combined = to_dtype(f._ufunc_call(found, row), target, False)
        return combined, combined

    first = lax.slice_in_dim(rows, 0, 1)
    _, others = lax.scan(step, rows[0], lax.slice_in_dim(rows, 1, rows.aval.shape[0]))
    return moveaxis(lax.concatenate([first, others], 0), 0, axis)


@compound(static=("f",))
def _updated(a: Value, indices: Any, given: list[Any], f: ufunc) -> Value:
    if f._ufunc_at is not None:
        found: Value = f._ufunc_at(a, indices, *given)
        return found
    numbers = lax.reshape(lax.iota(dtypes.default_int(), a.aval.size), a.aval.shape)
    places = numbers.at[indices].get(mode="fill", fill_value=a.aval.size)
    operands = [broadcast_to_shape(as_value(g), places.aval.shape) for g in given]
    ones = [to_dtype(1, v.aval.dtype, v.aval.weak_type) for v in (a, *operands)]
    target = as_value(f._ufunc_call(*ones)).aval.dtype
    flat = lax.reshape(to_dtype(a, target, False), (a.aval.size,))
    order = lax.reshape(places, (places.aval.size,))
    values = [lax.reshape(to_dtype(v, target, False), (places.aval.size,)) for v in operands]

    def step(k: Value, found: Value) -> Value:
        place = order[k]
        new = to_dtype(f._ufunc_call(found[place], *[v[k] for v in values]), target, False)
        changed: Value = found.at[place].set(new, mode="drop")
        return changed

    return lax.reshape(lax.fori_loop(0, places.aval.size, step, flat), a.aval.shape)


@compound(static=("f", "axis", "dtype"))
def _reduced_pieces(a: Value, starts: Value, f: ufunc, axis: int, dtype: Any) -> Value:
    target = f._result_dtype(a) if dtype is None else dtypes.requested_dtype(dtype, f.__name__)
    rows = to_dtype(moveaxis(a, axis, 0), target, False)
    size = rows.aval.shape[0]
    column = (starts.aval.size, *[1] * (rows.aval.ndim - 1))
    ends = lax.concatenate([lax.slice_in_dim(starts, min(1, starts.aval.size), starts.aval.size),
                            lax.full((min(1, starts.aval.size),), size, starts.aval.dtype)], 0)  # fmt: skip
    low, high = lax.reshape(starts, column), lax.reshape(ends, column)

    def step(k: Value, found: Value) -> Value:
        number = to_dtype(k, starts.aval.dtype, False)
        combined = to_dtype(f._ufunc_call(found, rows[k][None]), target, False)
        return choose((number > low) & (number < high), combined, found)

    return moveaxis(lax.fori_loop(0, size, step, rows[starts]), 0, axis)


# ---- better ways


def _summed_dtype(x: Value, dtype: Any, name: str) -> Any:
    if dtype is not None:
        return dtypes.requested_dtype(dtype, name)
    return dtypes.default_int() if x.aval.dtype.kind == "b" else x.aval.dtype


def _running(function: Callable[..., Value], name: str) -> Callable[[Value, int, Any], Value]:
    """A running sum or product, of booleans as integers."""

    def accumulate(x: Value, axis: int, dtype: Any) -> Value:
        return function(to_dtype(x, _summed_dtype(x, dtype, name), False), axis)

    return accumulate


def _running_extremum(function: Callable[..., Value], name: str) -> Callable[[Value, int, Any], Value]:
    def accumulate(x: Value, axis: int, dtype: Any) -> Value:
        own = x.aval.dtype if dtype is None else dtypes.requested_dtype(dtype, name)
        if own.kind == "b":
            return to_dtype(function(to_dtype(x, dtypes.int32, False), axis), own, False)
        return function(to_dtype(x, own, False), axis)

    return accumulate


def _extremum(function: Callable[..., Value]) -> Callable[..., Value]:
    def reduce(a: ArrayLike, *, axis: Axis, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Value:
        x = a if dtype is None else lax.convert_element_type(a, dtypes.requested_dtype(dtype, function.__name__))
        return function(x, axis, keepdims=keepdims, initial=initial, where=where)

    return reduce


def _bits(
    name: str, combine: Callable[[Any, Any], Value], function: Callable[..., Value], identity: int, truth: bool = False
) -> Callable[..., Value]:
    """Reductions by bits, or of truth values."""

    @compound(static=("axis", "dtype", "keepdims"), small=True)
    def reduce(a: ArrayLike, *, axis: Axis, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Value:
        x = as_value(a)
        if truth:
            x = ew.to_bool(x)
        elif dtype is not None:
            x = to_dtype(x, dtypes.requested_dtype(dtype, name), False)
        if dtypes.is_inexact(x.aval.dtype):
            raise OperandError(f"{name}.reduce takes integers or booleans, not {x.aval.str_short()}", name)
        axes, shape = canonical_axes(axis, x.aval.ndim), x.aval.shape
        if where is not None:
            neutral = to_dtype(bool(identity) if x.aval.dtype.kind == "b" else identity, x.aval.dtype, False)
            x = choose(broadcast_to_shape(as_value(where), shape), x, neutral)
        found = function(to_dtype(x, x.aval.dtype, False), axes)
        if initial is not None:
            start = ew.to_bool(as_value(initial)) if truth else to_dtype(initial, x.aval.dtype, False)
            found = combine(start, found)
        if dtype is not None:
            found = to_dtype(found, dtypes.requested_dtype(dtype, name), False)
        return keep_dimensions(found, shape, axes) if keepdims else found

    return reduce


def _log_of_sum(name: str, scale: float, combine: Callable[[Any, Any], Value]) -> Callable[..., Value]:
    """log(sum(exp)) to the base with the logarithm `scale`."""

    @compound(static=("axis", "dtype", "keepdims"))
    def reduce(a: ArrayLike, *, axis: Axis, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Value:
        (x,) = promote_inexact(name, a)
        x = to_dtype(x, x.aval.dtype if dtype is None else dtypes.requested_dtype(dtype, name), False)
        axes, shape = canonical_axes(axis, x.aval.ndim), x.aval.shape
        if where is not None:
            x = choose(broadcast_to_shape(as_value(where), shape), x, -math.inf)
        if math.prod([shape[d] for d in axes]):
            largest = lax.stop_gradient(red.max(x, axes, keepdims=True))
            largest = choose(ew.isfinite(largest), largest, 0)
        else:
            largest = lax.full((), 0, x.aval.dtype)
        total = red.sum(lax.exp((x - largest) * scale), axes, keepdims=True)
        found = lax.log(total) / scale + largest
        found = lax.reshape(found, [s for d, s in enumerate(found.aval.shape) if d not in axes])
        if initial is not None:
            found = combine(to_dtype(initial, x.aval.dtype, False), found)
        return keep_dimensions(found, shape, axes) if keepdims else found

    return reduce


def _running_log_of_sum(name: str, scale: float) -> Callable[[Value, int, Any], Value]:
    def accumulate(x: Value, axis: int, dtype: Any) -> Value:
        (value,) = promote_inexact(name, x)
        value = to_dtype(value, value.aval.dtype if dtype is None else dtypes.requested_dtype(dtype, name), False)
        return lax.cumlogsumexp(value * scale, axis) / scale if scale != 1 else lax.cumlogsumexp(value, axis)

    return accumulate


def _update(name: str) -> Callable[..., Value]:
    def at(a: Value, indices: Any, b: ArrayLike) -> Value:
        found: Value = getattr(a.at[indices], name)(b)
        return found

    return at


def _binary(func: Callable[..., Value], identity: Any, **ways: Any) -> BinaryUfunc:
    return BinaryUfunc(func, 2, 1, identity=identity, call=func, **ways)


add: BinaryUfunc = _binary(bi.add, 0, reduce=red.sum, accumulate=_running(lax.cumsum, "add"), at=_update("add"))
subtract: BinaryUfunc = _binary(bi.subtract, None, at=_update("subtract"))
multiply: BinaryUfunc = _binary(
    bi.multiply, 1, reduce=red.prod, accumulate=_running(lax.cumprod, "multiply"), at=_update("multiply")
)
maximum: BinaryUfunc = _binary(
    bi.maximum, None,
    reduce=_extremum(red.max), accumulate=_running_extremum(lax.cummax, "maximum"), at=_update("max"),
)  # fmt: skip
minimum: BinaryUfunc = _binary(
    bi.minimum, None,
    reduce=_extremum(red.min), accumulate=_running_extremum(lax.cummin, "minimum"), at=_update("min"),
)  # fmt: skip
bitwise_and: BinaryUfunc = _binary(bi.bitwise_and, -1, reduce=_bits("bitwise_and", bi.bitwise_and, lax.reduce_and, -1))
bitwise_or: BinaryUfunc = _binary(bi.bitwise_or, 0, reduce=_bits("bitwise_or", bi.bitwise_or, lax.reduce_or, 0))
bitwise_xor: BinaryUfunc = _binary(bi.bitwise_xor, 0, reduce=_bits("bitwise_xor", bi.bitwise_xor, lax.reduce_xor, 0))
logical_and = _binary(bi.logical_and, True, reduce=_bits("logical_and", bi.logical_and, lax.reduce_and, 1, True))
logical_or = _binary(bi.logical_or, False, reduce=_bits("logical_or", bi.logical_or, lax.reduce_or, 0, True))
logical_xor = _binary(bi.logical_xor, False, reduce=_bits("logical_xor", bi.logical_xor, lax.reduce_xor, 0, True))
logaddexp: BinaryUfunc = _binary(
    bi.logaddexp, -math.inf,
    reduce=_log_of_sum("logaddexp", 1.0, bi.logaddexp), accumulate=_running_log_of_sum("logaddexp", 1.0),
)  # fmt: skip
logaddexp2: BinaryUfunc = _binary(
    bi.logaddexp2, -math.inf,
    reduce=_log_of_sum("logaddexp2", math.log(2), bi.logaddexp2),
    accumulate=_running_log_of_sum("logaddexp2", math.log(2)),
)  # fmt: skip
negative: UnaryUfunc = UnaryUfunc(ew.negative, 1, 1, call=ew.negative)
