"""Compound library functions: outside of traced programs, each is one call of a stored program.

    @compound(static=("axis", "keepdims"))
    def var(x, axis=None, keepdims=False): ...

`var(x)` on arrays would be some ten NumPy calls. Instead the function is traced and compiled once for each combination
of argument types, as if it were jitted, and called through the same dispatch. While HLO is being recorded the Python
function itself runs, so that a traced program holds its operations with the user's lines. While a derivative is taken
outside of jit, the function is one nested call, and its derivative is a stored program too.

A call that cannot be traced runs op by op: the function must see values, or the backend lacks a type. Errors come from
this plain run too, so that they name the user's line and not an argument of a program that the user never wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, TypeVar

from ..hlo.sizes import as_size
from ..hlo.support.tracebacks import Signal, hide
from .arguments import ArgumentSpec
from .caches import MAX_PROGRAMS
from .callers import is_call_of_user
from .errors import ConcretizationTypeError, KeyReuseError
from .jit import PjitFunction, Run
from .recording import is_recording
from .settings.context import current_context, is_lenient, lenient

F = TypeVar("F", bound=Callable[..., Any])
_NONE = ArgumentSpec(frozenset(), frozenset())
_NO_CALLS: frozenset[Any] = frozenset()
_NOT_TRACEABLE = (TypeError, ValueError, IndexError, OverflowError, NotImplementedError)
"""The errors that tracing raises for invalid arguments, for functions that must see values, and for types that the
backend lacks. Anything else is a fault of the library or the machine, and is not hidden."""


def compound(
    *, static: Sequence[str] = (), small: bool = False, uses_keys: bool = False
) -> Callable[[F], F]:
    """A decorator for library functions of several operations.

    static: the arguments that are Python values (axes, shapes, dtypes); all others are arrays, numbers or containers.
    small: a function of one or two operations, and much Python around them. It is one program where it is called on
    arrays; where it is differentiated or batched, single operations cost less than a nested call.
    uses_keys: a function that is one use of a random key (`key_uses.py`). With `debug_key_reuse` it runs as it is, and
    other functions are nested calls where HLO is recorded, so that each use is an operation of the user's program.
    """

    def decorate(fun: Callable[..., Any]) -> Any:
        return Compound(fun, argument_names(fun, static), small, uses_keys)

    return decorate


class Compound(PjitFunction[..., Any]):
    """A library function that runs as one program. Made by `compound`."""

    _is_library = True

    def __init__(
        self, fun: Callable[..., Any], static: ArgumentSpec, small: bool = False, uses_keys: bool = False
    ) -> None:
        super().__init__(fun, static, _NONE, inline=False)
        self._small = small
        self._uses_keys = uses_keys
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
        return Compound(fun, self._static, self._small, self._uses_keys)

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
        if direct and (fast_key is None or (context, fast_key) in self._untraceable):
            raise _Declined
        try:
            return super()._call(args, kwargs, table, fast_key)
        except KeyReuseError:  # a TypeError, as in JAX
            raise
        except _NOT_TRACEABLE:
            if direct:
                self._decline(context, fast_key)
            raise _Declined from None

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
