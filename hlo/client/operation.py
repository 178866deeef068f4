"""How a function of a Construction becomes a method of a ComputationBuilder.

    class ComputationBuilder(BuilderCore):
        sort = operation(movement.sort)                          # a function that makes a value
        outfeed = effect(structure.outfeed)                      # one that makes none
        exp = unary(Opcode.EXP, "e to the power of x.")          # an op without attributes: one line each
        add = binary(Opcode.ADD, "lhs + rhs. ...")

The method has the function's arguments and docstring. Editors and type checkers see the type of the call.
"""

from __future__ import annotations

import functools
import inspect
import keyword
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from numpy.typing import ArrayLike

from ..element_type import ElementType
from ..ir import NO_ATTRIBUTES, Attributes
from ..opcode import Opcode
from ..ops import OpSpec, Trait
from ..ops.elementwise import CompareAttributes, ComparisonDirection
from ..support.tracebacks import boundary
from .constants import ElementTypeLike, constant
from .construction import Construction, Handle, Integers
from .core import BuilderCore, any_failed
from .elementwise import apply_binary, require_type

P = ParamSpec("P")
C = TypeVar("C", bound=Callable[..., "Handle | None"])


class UnaryMethod(Protocol):
    """A method of one operand."""

    def __call__(self, operand: Handle) -> Handle: ...


class BinaryMethod(Protocol):
    """A method of two operands, which are broadcast as `plan_broadcast` says."""

    def __call__(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle: ...


class ArrayMethod(Protocol):
    """A method that makes a constant."""

    def __call__(self, values: ArrayLike, dtype: ElementTypeLike = None) -> Handle: ...


class Operation(Generic[C]):
    """A function of a Construction as a method; `C` is how users call it."""

    def __init__(self, function: Callable[..., Handle | None], opcode: Opcode | None = None) -> None:
        """`opcode`: the op that the method makes, if it is one op for each element."""
        self.function, self.opcode = function, opcode
        self.__doc__ = function.__doc__
        self.method: Callable[..., Any] = function

    def __set_name__(self, owner: type[BuilderCore], name: str) -> None:
        self.method = boundary(self.guarded(name))
        self.method.__name__, self.method.__qualname__ = name, f"{owner.__name__}.{name}"
        self.method.__doc__ = self.__doc__
        first, *others = inspect.signature(self.function).parameters.values()
        signature = inspect.Signature([first.replace(name="self", annotation=BuilderCore), *others])
        self.method.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it

    def guarded(self, name: str) -> Callable[..., Any]:
        """The method called `name`. An error in it is noted, and it returns a failed value; operations on failed values
        fail silently."""

        @functools.wraps(self.function)
        def method(builder: BuilderCore, *args: Any, **kwargs: Any) -> Handle:
            if not any_failed((args, kwargs)):
                with builder._noting(name, (args, kwargs)):
                    value = self.function(builder._construction, *args, **kwargs)
                    assert value is not None
                    return value
            return Handle(builder._construction, None)

        return method

    @overload
    def __get__(self, builder: None, owner: type) -> Callable[..., Any]: ...

    @overload
    def __get__(self, builder: BuilderCore, owner: type) -> C: ...

    def __get__(self, builder: BuilderCore | None, owner: type) -> Any:
        return self.method if builder is None else MethodType(self.method, builder)


class Effect(Operation[C]):
    """A function without a value: the computation does not return its value."""

    def guarded(self, name: str) -> Callable[..., Any]:
        @functools.wraps(self.function)
        def method(builder: BuilderCore, *args: Any, **kwargs: Any) -> None:
            if not any_failed((args, kwargs)):
                construction = builder._construction
                last = construction.last
                with builder._noting(name, (args, kwargs)):
                    self.function(construction, *args, **kwargs)
                construction.last = last

        return method


def operation(function: Callable[Concatenate[Construction, P], Handle]) -> Operation[Callable[P, Handle]]:
    """`function` as a method."""
    return Operation(function)


def effect(function: Callable[Concatenate[Construction, P], None]) -> Effect[Callable[P, None]]:
    """`function`, which makes no value, as a method."""
    return Effect(function)


def unary(opcode: Opcode, words: str, only: ElementType | None = None) -> Operation[UnaryMethod]:
    """The method for `opcode` on one operand; `words` describe the result. `only`: the one element type allowed."""

    def function(build: Construction, operand: Handle) -> Handle:
        if only is not None:
            require_type(build, only, operand)
        return build.enqueue(opcode, [operand])

    function.__doc__ = words
    return Operation(function, opcode)


def binary(opcode: Opcode, words: str, only: ElementType | None = None) -> Operation[BinaryMethod]:
    """The method for `opcode` on two operands; `words` describe the result. `only`: the one element type allowed."""
    return _of_two(opcode, words, only, NO_ATTRIBUTES)


def comparison(direction: ComparisonDirection, words: str) -> Operation[BinaryMethod]:
    """The method that compares by value, NaN unordered; `words` say when it returns true."""
    return _of_two(Opcode.COMPARE, words, None, CompareAttributes(direction))


def _of_two(opcode: Opcode, words: str, only: ElementType | None, attributes: Attributes) -> Operation[BinaryMethod]:
    def function(build: Construction, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        if only is not None:
            require_type(build, only, lhs, rhs)
        return apply_binary(build, opcode, lhs, rhs, broadcast_dimensions, attributes)

    function.__doc__ = words
    return Operation(function, opcode)


def array_of_rank(rank: int, words: str) -> Operation[ArrayMethod]:
    """The method that makes a constant of `rank`; `words` describe it."""

    def function(build: Construction, values: ArrayLike, dtype: ElementTypeLike = None) -> Handle:
        return constant(build, values, rank, dtype)

    function.__doc__ = words
    return Operation(function)


_TYPED = frozenset((Opcode.CONVERT, Opcode.STOCHASTIC_CONVERT))
"""Ops that need an explicit result type; these methods have no argument for it."""


def add_operations(owner: type[BuilderCore], specs: Iterable[OpSpec]) -> None:
    """Give `owner` a method for each element-wise op of one or two operands without attributes, if it does not have
    one.

    So a new op of that kind becomes a method by its declaration alone. Its name is the opcode in lower case, with a `_`
    after Python's keywords.
    """
    present = {member.opcode for member in vars(owner).values() if isinstance(member, Operation)}
    for spec in specs:
        is_plain = spec.attributes is Attributes and spec.arity in (1, 2) and Trait.ELEMENTWISE in spec.traits
        if not is_plain or spec.opcode in present or spec.opcode in _TYPED:
            continue
        make: Callable[[Opcode, str], Operation[Any]] = unary if spec.arity == 1 else binary
        added = make(spec.opcode, f"HLO's {spec.opcode.value}, element by element.")
        name = spec.opcode.name.lower()
        name += "_" if keyword.iskeyword(name) else ""
        setattr(owner, name, added)
        added.__set_name__(owner, name)
