"""Compound library functions: outside of traced programs, each is one call of a stored program.

    @compound(static=("axis", "keepdims"))
    def var(x, axis=None, keepdims=False): ...

`var(x)` on arrays would be some ten NumPy calls. Instead the function is traced and compiled once for each combination
of argument types, as if it were jitted, and called through the same dispatch. While HLO is being recorded the Python
function itself runs, so that a traced program holds its operations with the user's lines. While a derivative is taken
outside of jit, the function is one nested call, and its derivative is a stored program too.

A function of a few exact operations (`where`, `all`, `stack`) runs them one by one at first, since compiling them takes
as long as a thousand calls. It becomes a program for the types with which it is called often (`frequent`).

A call that cannot be traced runs op by op: the function must see values, or the backend lacks a type. Errors come from
this plain run too, so that they name the user's line and not an argument of a program that the user never wrote.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from types import NoneType
from typing import Any, TypeVar

from ..hlo.sizes import as_size
from ..hlo.support.tracebacks import Signal, hide
from .arguments import ArgumentSpec
from .arrays.array import Array
from .aval import ShapedArray
from .caches import MAX_PROGRAMS
from .callers import is_call_of_user
from .errors import ConcretizationTypeError, KeyReuseError
from .jit import PjitFunction, Run
from .recording import is_recording
from .settings.context import current_context, is_lenient, lenient

F = TypeVar("F", bound=Callable[..., Any])
_NONE = ArgumentSpec(frozenset(), frozenset())
_NO_CALLS: frozenset[Any] = frozenset()
MANY_CALLS = 1000
"""After so many calls a program of a few operations has cost no more than it saves: ten milliseconds to compile it, ten
microseconds a call."""
_NOT_TRACEABLE = (TypeError, ValueError, IndexError, OverflowError, NotImplementedError)
"""The errors that tracing raises for invalid arguments, for functions that must see values, and for types that the
backend lacks. Anything else is a fault of the library or the machine, and is not hidden."""


def compound(
    *, static: Sequence[str] = (), small: bool = False, frequent: bool = False, uses_keys: bool = False
) -> Callable[[F], F]:
    """A decorator for library functions of several operations.

    static: the arguments that are Python values (axes, shapes, dtypes); all others are arrays, numbers or containers.
    small: a function of one or two operations, and much Python around them. It is one program where it is called on
    arrays; where it is differentiated or batched, single operations cost less than a nested call.
    frequent: its operations have the same results one by one, bit for bit, and its result is no view of an operand:
    that takes less time than any program. It is one program where it is called often on arrays of the same types. It is
    small, too. Its static arguments may be lists.
    uses_keys: a function that is one use of a random key (`key_uses.py`). With `debug_key_reuse` it runs as it is, and
    other functions are nested calls where HLO is recorded, so that each use is an operation of the user's program.
    """

    def decorate(fun: Callable[..., Any]) -> Any:
        return Compound(fun, argument_names(fun, static), small, uses_keys, frequent)

    return decorate


class Compound(PjitFunction[..., Any]):
    """A library function that runs as one program. Made by `compound`."""

    _is_library = True

    def __init__(
        self, fun: Callable[..., Any], static: ArgumentSpec, small: bool = False, uses_keys: bool = False,
        frequent: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(fun, static, _NONE, inline=False)
        self._small = small or frequent
        self._uses_keys = uses_keys
        self._frequent = frequent
        self._plain_calls = MANY_CALLS if frequent else 0
        """How many calls, of any types, run as they are before those of the same types are counted."""
        self._ripe: set[Any] | frozenset[Any] = _NO_CALLS
        """The calls that came often enough to become programs."""
        self._untraceable: set[Any] | frozenset[Any] = _NO_CALLS
        """The calls that have no program."""
        names = fun.__code__.co_varnames
        self._shape = names.index("shape") if "shape" in static.names else None
        """The position of a static argument that is called "shape": it may be a list, which cannot be hashed, or an
        object that changes."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        try:
            if not self._state.direct and (self._small or self._is_inlined()):
                return self._fun(*args, **kwargs)
            if self._plain_calls:
                self._plain_calls -= 1
                return self._fun(*args, **kwargs)
            try:
                return super().__call__(*args, **kwargs)
            except _Declined:
                pass
            except OverflowError:  # a Python number that its default dtype cannot hold
                if not self._state.direct:
                    raise
            return self._fun(*args, **kwargs)  # outside of the handler: its errors are the user's own
        except ConcretizationTypeError as error:
            try:
                return error.of_all(self, args, kwargs)
            except BaseException as error:
                hide(error)
                raise
        except BaseException as error:
            hide(error)
            raise

    def with_function(self, fun: Callable[..., Any]) -> Compound:
        """Another function of the same parameters, compound as this one."""
        return Compound(fun, self._static, self._small, self._uses_keys, self._frequent)

    def _is_inlined(self) -> bool:
        """Whether the Python function itself is traced."""
        return is_recording(self._state.trace) and (self._uses_keys or not current_context().debug_key_reuse)

    def _with_shape_as_tuple(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The arguments with the shape as a tuple; None if it is one, or no sequence of integers."""
        place = self._shape
        assert place is not None
        given = args[place] if len(args) > place else kwargs.get("shape")
        if type(given) in (tuple, int, NoneType, str):
            return None
        try:
            sizes = tuple([as_size(size) for size in given])  # type: ignore[union-attr]
        except TypeError:
            return None
        if len(args) > place:
            return (*args[:place], sizes, *args[place + 1 :]), kwargs
        return args, {**kwargs, "shape": sizes}

    def _with_static_tuples(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The arguments with tuples in place of lists where they are static; None if none is a list."""
        static = self._static
        places = [k for k in static.positional(len(args)) if type(args[k]) in (list, tuple)]
        names = [name for name in kwargs if name in static.names and type(kwargs[name]) in (list, tuple)]
        changed = {k: made for k in places if (made := _tuples(args[k])) is not args[k]}
        named = {name: made for name in names if (made := _tuples(kwargs[name])) is not kwargs[name]}
        if not changed and not named:
            return None
        return tuple([changed.get(k, a) for k, a in enumerate(args)]), {**kwargs, **named}

    def _call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], table: dict[Any, Run] | None = None, fast_key: Any = None
    ) -> Any:
        context = current_context()
        if context.debug_key_reuse and self._uses_keys:
            raise _Declined
        if not is_lenient(context) and not is_call_of_user(self._fun):
            with lenient():  # programs that users call with these settings are others: their arguments were checked
                return self._call(args, kwargs)
        if context.disable_jit or context.backend == "evaluator":
            raise _Declined
        direct = self._state.direct
        if self._shape is not None and (hashable := self._with_shape_as_tuple(args, kwargs)) is not None:
            return self(*hashable[0], **hashable[1])
        if self._frequent and direct:
            if fast_key is None and (hashable := self._with_static_tuples(args, kwargs)) is not None:
                return super().__call__(*hashable[0], **hashable[1])
            if table is not None and (context, fast_key) not in self._ripe:
                table[fast_key] = self._counter(context, fast_key, table)
                raise _Declined
        if direct and (fast_key is None or (context, fast_key) in self._untraceable):
            raise _Declined
        try:
            return super()._call(args, kwargs, table, fast_key)
        except KeyReuseError:  # a TypeError, as in JAX
            raise
        except _NOT_TRACEABLE:
            if direct:
                self._decline(context, fast_key)
                if self._frequent and table is not None:
                    table[fast_key] = _decline
            raise _Declined from None

    def _counter(self, context: Any, fast_key: Any, table: dict[Any, Run]) -> Run:
        """In the place of the program of a call: declines it, and at last goes away, so that the next such call is
        compiled."""
        if _rounds_twice(fast_key):
            return _decline
        left = MANY_CALLS

        def count(arrays: Sequence[Array]) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                ripe = self._ripe
                if isinstance(ripe, frozenset) or len(ripe) >= MAX_PROGRAMS:
                    ripe = self._ripe = set()
                ripe.add((context, fast_key))
                table.pop(fast_key, None)
            raise _Declined

        return count

    def _decline(self, context: Any, fast_key: Any) -> None:
        found = self._untraceable
        if isinstance(found, frozenset) or len(found) >= MAX_PROGRAMS:
            found = self._untraceable = set()
        found.add((context, fast_key))

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<function {self.__qualname__}>"


class _Declined(Signal):
    """The call does not run as a program: the Python function itself runs."""


def _decline(arrays: Sequence[Array]) -> Any:
    raise _Declined


def _rounds_twice(fast_key: Any) -> bool:
    """Whether a program would round a number of Python to its default dtype, and then to a narrower float: a single
    operation rounds it once. `fast_key`: types of arrays, or a tuple that ends with them (`PjitFunction`)."""
    avals = [part for part in _parts(fast_key) if isinstance(part, ShapedArray)]
    return any(a.weak_type for a in avals) and any(a.dtype.itemsize < 4 and a.dtype.kind not in "biu" for a in avals)


def _parts(key: Any) -> Iterator[Any]:
    for part in key:
        if isinstance(part, tuple):
            yield from _parts(part)
        else:
            yield part


def _tuples(value: Any) -> Any:
    """The value, with tuples in place of the lists in it."""
    if not isinstance(value, list | tuple):
        return value
    parts = [_tuples(part) for part in value]
    if type(value) is tuple and all(map(operator.is_, parts, value)):
        return value
    return tuple(parts)


def argument_names(fun: Callable[..., Any], names: Sequence[str]) -> ArgumentSpec:
    """The arguments called `names`, by position and by name."""
    if not names:
        return _NONE
    code = fun.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    missing = [n for n in names if n not in parameters]
    assert not missing, f"{fun.__name__} has no arguments {missing}"
    positions = frozenset(parameters.index(n) for n in names if parameters.index(n) < code.co_argcount)
    return ArgumentSpec(positions, frozenset(names))
