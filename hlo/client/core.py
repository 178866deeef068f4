"""The heart of a ComputationBuilder: instructions are enqueued, errors noted, and at the end there is a computation.

The methods that make operations stand in the files of their families; each is an `operation` (or an `effect`, which
has no value) and works on handles.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar, overload

from ..builder import make_instruction
from ..errors import HloError, ShapeError
from ..ir import NO_ATTRIBUTES, Attributes, HloComputation, HloInstruction
from ..opcode import Opcode
from ..shape import Shape
from ..source import user_line, user_metadata
from .handle import BuildError, Computation, ComputationDataHandle, Session

if TYPE_CHECKING:
    from .local_client import LocalClient

P = ParamSpec("P")
B = TypeVar("B", bound="BuilderCore")
K = TypeVar("K")
Handle = ComputationDataHandle
Integers = Iterable[int]


def operation(method: Callable[Concatenate[B, P], Handle]) -> Callable[Concatenate[B, P], Handle]:
    """Decorator of a method that makes a value. An error in it is noted, and the value is one that failed; what is
    made of failed values fails silently."""

    @functools.wraps(method)
    def guarded(self: B, /, *args: P.args, **kwargs: P.kwargs) -> Handle:
        if self._method:  # a step of another operation, which notes the error
            return method(self, *args, **kwargs)
        if _any_failed((args, kwargs)):
            return Handle(self._session, None)
        with self._noting(method.__name__, (args, kwargs)):
            return method(self, *args, **kwargs)
        return Handle(self._session, None)

    return guarded


def effect(method: Callable[Concatenate[B, P], None]) -> Callable[Concatenate[B, P], None]:
    """Decorator of a method that makes no value: what it enqueues is not what the computation returns."""

    @functools.wraps(method)
    def guarded(self: B, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if not _any_failed((args, kwargs)):
            last = self._session.last
            with self._noting(method.__name__, (args, kwargs)):
                method(self, *args, **kwargs)
            self._session.last = last

    return guarded


class BuilderCore:
    """Parameters' numbers, the instructions so far, the first error."""

    @overload
    def __init__(self, name: str, /, *, client: LocalClient | None = None) -> None: ...

    @overload
    def __init__(self, client: LocalClient, name: str, /) -> None: ...

    def __init__(self, *args: Any, client: LocalClient | None = None) -> None:
        """`ComputationBuilder(name)`, or `ComputationBuilder(client, name)` as in the seeds.

        The client is needed for nothing but `builder.client`.
        """
        if len(args) == 2:
            client, name = args
        elif len(args) == 1:
            (name,) = args
        else:
            raise TypeError(f"ComputationBuilder takes (name) or (client, name), not {len(args)} arguments")
        if not isinstance(name, str) or isinstance(client, str):
            raise TypeError("ComputationBuilder takes (name) or (client, name), and the name is a string")
        self._name, self._client = name, client
        self._session = Session()
        self._parent: BuilderCore | None = None
        self._dies = False
        self._method = ""
        self._errors: list[BuildError] = []

    # ---- what it is

    @property
    def name(self) -> str:
        """The name that the computation gets."""
        return self._name

    @property
    def client(self) -> LocalClient | None:
        """The client that the builder was made with."""
        return self._client

    def set_die_immediately_on_error(self, enabled: bool) -> None:
        """True: an error is raised by the method that finds it. False (the default): by `build`."""
        self._dies = enabled

    @property
    def first_error(self) -> BuildError | None:
        """What `build` will raise; None as long as all went well."""
        return self._errors[0] if self._errors else None

    @property
    def errors(self) -> tuple[BuildError, ...]:
        """All errors noted so far. What follows from a failed operation is not counted again."""
        return tuple(self._errors)

    # ---- questions

    def get_shape(self, operand: Handle) -> Shape:
        """The (inferred) shape of a value. Raises at once if the value was never made."""
        with self._raising("get_shape", operand):
            return self._instruction(operand).shape

    def check_shape(self, operand: Handle, expected_shape: Shape) -> Handle:
        """`operand`, whose shape must be `expected_shape` (layouts aside); raises at once if it is another.

        builder_c7: the shapes agree.
        """
        with self._raising("check_shape", operand):
            found = self._instruction(operand).shape
            if not found.compatible(expected_shape):
                raise ShapeError(f"the shape is {found}, expected {expected_shape}", "builder_c7")
            return operand

    def check_same_shape(self, lhs: Handle, rhs: Handle) -> None:
        """Both values must have one shape (layouts aside); raises at once if they differ.

        builder_c7: the shapes agree.
        """
        with self._raising("check_same_shape", lhs, rhs):
            a, b = self._instruction(lhs).shape, self._instruction(rhs).shape
            if not a.compatible(b):
                raise ShapeError(f"the shapes differ: {a} and {b}", "builder_c7")

    # ---- sub-builders, the end

    def create_sub_builder(self: B, computation_name: str) -> B:
        """A builder for a computation that this builder will use. It dies on errors if this one does."""
        sub = type(self)(computation_name, client=self._client)
        sub._parent = self
        sub._dies = self._dies
        return sub

    def set_return_value(self, operand: Handle) -> None:
        """The computation will return `operand`, and not the last expression enqueued: not even a later one, unless
        this is called again."""
        if operand.failed:
            return
        with self._noting("set_return_value", operand):
            self._session.returned = self._instruction(operand)

    def build(self) -> Computation:
        """The computation of all that was enqueued; it returns the last expression, or what `set_return_value` says.

        Raises the first error that was noted. A computation with nothing but effects returns an empty tuple. The
        builder starts anew afterwards: handles of what was built are of no use to it any more.

        builder_c3: something was enqueued; builder_c4: the parameters are numbered 0 to n-1.
        """
        if self._errors:
            raise self._errors[0]
        session = self._session
        with self._noting("build"):
            if not session.instructions:
                raise ShapeError("nothing was enqueued: there is no computation to build", "builder_c3")
            numbers = sorted(session.parameters)
            if numbers != list(range(len(numbers))):
                missing = sorted(set(range(numbers[-1])) - set(numbers))
                why = f"there are parameters {numbers}, but not {missing}: they must be numbered without a gap"
                raise ShapeError(why, "builder_c4")
            root = session.returned or session.last
            if root is None:
                root = self._enqueue(Opcode.TUPLE, ()).instruction
            self._session = Session()
            return Computation(HloComputation(self._name, tuple(session.instructions), root))
        raise self._errors[0]

    def build_and_note_error(self) -> Computation:
        """As `build`; but an error is noted in the builder that made this one, and the computation is empty.

        For a computation that only the parent uses, whose operations on it then fail silently.
        """
        if self._parent is None:
            raise HloError(f"{self._name!r} was not made by create_sub_builder: there is no parent to note errors in")
        try:
            return self.build()
        except BuildError as error:
            if self._dies:
                raise
            self._parent._errors.append(error)
            return Computation(None)

    # ---- for the operations

    def _enqueue(
        self,
        opcode: Opcode,
        operands: Sequence[Handle],
        attributes: Attributes = NO_ATTRIBUTES,
        shape: Shape | None = None,
        *,
        name: str = "",
    ) -> Handle:
        """Infer the shape, make the instruction, and put it behind the others."""
        instructions = [self._instruction(o) for o in operands]
        made = make_instruction(
            opcode, instructions, attributes, shape, name=name, metadata=user_metadata(self._method)
        )
        self._session.instructions.append(made)
        self._session.last = made
        return Handle(self._session, made)

    def _instruction(self, operand: Handle) -> HloInstruction:
        """The instruction behind a handle.

        builder_c1: it is a handle; builder_c2: of this builder and of what is being built.
        """
        if not isinstance(operand, Handle):
            why = f"an operand must be a ComputationDataHandle, not {type(operand).__name__}: make it a constant"
            raise ShapeError(why, "builder_c1")
        if operand._session is not self._session:
            why = f"{operand!r} is of another builder, or of a computation that was built already"
            raise ShapeError(why, "builder_c2")
        return operand.instruction

    def _of_kind(self, value: object, kind: type[K], what: str) -> K:
        """builder_c11: `value` is a `kind`."""
        if not isinstance(value, kind):
            raise ShapeError(f"{what} must be a {kind.__name__}, not {value!r}", "builder_c11")
        return value

    def _called(self, computation: Computation) -> HloComputation:
        """builder_c5: the argument is a Computation."""
        if not isinstance(computation, Computation):
            why = f"a computation must be what build() returns, not {type(computation).__name__}"
            raise ShapeError(why, "builder_c5")
        return computation.hlo

    def _integers(self, values: Integers, what: str, count: int | None = None) -> tuple[int, ...]:
        """builder_c6: `values` are integers, `count` of them."""
        try:
            found = tuple(operator.index(v) for v in values)
        except TypeError:
            raise ShapeError(f"{what} must be a sequence of integers, not {values!r}", "builder_c6") from None
        if count is not None and len(found) != count:
            raise ShapeError(f"{what} {list(found)} must have {count} entries", "builder_c6")
        return found

    @contextmanager
    def _noting(self, method: str, arguments: object = ()) -> Iterator[None]:
        """Errors inside are noted, or raised at once if the builder is to die on them."""
        self._method = method
        try:
            yield
        except HloError as error:
            noted = self._described(error, method, arguments)
            if self._dies:
                raise noted from None
            self._errors.append(noted)
        finally:
            self._method = ""

    @contextmanager
    def _raising(self, method: str, *arguments: object) -> Iterator[None]:
        """Errors inside are raised at once, as failed checks of the seeds are."""
        for operand in arguments:
            if isinstance(operand, Handle) and operand.failed and self._errors:
                raise self._errors[0]
        try:
            yield
        except HloError as error:
            raise self._described(error, method, arguments) from None

    def _described(self, error: HloError, method: str, arguments: object) -> BuildError:
        shapes = ", ".join(_described_argument(a) for a in _flat(arguments) if isinstance(a, Handle | Computation))
        message = f"{type(self).__name__}.{method}({shapes}) in {self._name!r}: {error}"
        line = user_line()
        if line:
            message += f"\n  at {line}"
        return BuildError(message, getattr(error, "label", ""), method)

    def _refuse(self, why: str, label: str) -> NoReturn:
        raise ShapeError(why, label)


def _flat(arguments: object) -> Iterator[object]:
    """What stands in nested tuples, lists and dictionaries."""
    if isinstance(arguments, dict):
        arguments = list(arguments.values())
    if isinstance(arguments, list | tuple):
        for argument in arguments:
            yield from _flat(argument)
    else:
        yield arguments


def _any_failed(arguments: object) -> bool:
    return any(
        (isinstance(a, Handle) and a.failed) or (isinstance(a, Computation) and a.is_null) for a in _flat(arguments)
    )


def _described_argument(argument: object) -> str:
    if isinstance(argument, Handle):
        return "?" if argument.failed else str(argument.shape)
    assert isinstance(argument, Computation)
    return "?" if argument.is_null else argument.name
