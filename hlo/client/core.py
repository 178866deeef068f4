"""The core of a ComputationBuilder: it notes errors, and returns a computation at the end.

The operations are in the files of their families; `builder.py` makes them methods of this class's subclass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from ..errors import HloError, ShapeError
from ..layout import Layout
from ..shape import Shape
from ..support.source import user_line
from ..support.tracebacks import boundaries
from . import constants
from .construction import Construction, Handle
from .data import GlobalData
from .handle import BuildError, Computation
from .local_client import LocalClient

B = TypeVar("B", bound="BuilderCore")


@boundaries
class BuilderCore:
    """The methods of a builder that are not operations: questions, errors, `build`."""

    @overload
    def __init__(self, name: str, /, *, client: LocalClient | None = None) -> None: ...

    @overload
    def __init__(self, client: LocalClient, name: str, /) -> None: ...

    def __init__(self, *args: Any, client: LocalClient | None = None) -> None:
        """`ComputationBuilder(name)`, or `ComputationBuilder(client, name)` as in the seeds.

        The client is only used for `builder.client`.
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
        self._construction = Construction()
        self._parent: BuilderCore | None = None
        self._dies = False
        self._errors: list[BuildError] = []

    # ---- properties

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
        """The error that `build` will raise; None as long as all went well."""
        return self._errors[0] if self._errors else None

    @property
    def errors(self) -> tuple[BuildError, ...]:
        """All errors noted so far. Consequences of a failed operation are not counted again."""
        return tuple(self._errors)

    # ---- questions

    def get_shape(self, operand: Handle) -> Shape:
        """The (inferred) shape of a value. Raises at once if the value was never made."""
        with self._raising("get_shape", operand):
            return self._construction.shape(operand)

    def check_shape(self, operand: Handle, expected_shape: Shape) -> Handle:
        """`operand`, checked to have the shape `expected_shape` (ignoring layouts); raises at once if it is another.

        builder_c7: the shapes agree.
        """
        with self._raising("check_shape", operand):
            found = self._construction.shape(operand)
            if not found.compatible(expected_shape):
                raise ShapeError(f"the shape is {found}, expected {expected_shape}", "builder_c7")
            return operand

    def check_same_shape(self, lhs: Handle, rhs: Handle) -> None:
        """Both values must have one shape (ignoring layouts); raises at once if they differ.

        builder_c7: the shapes agree.
        """
        with self._raising("check_same_shape", lhs, rhs):
            a, b = self._construction.shape(lhs), self._construction.shape(rhs)
            if not a.compatible(b):
                raise ShapeError(f"the shapes differ: {a} and {b}", "builder_c7")

    def is_constant(self, operand: Handle) -> bool:
        """True if the value depends on no parameter and on nothing from outside. Random numbers count as constant."""
        with self._raising("is_constant", operand):
            return constants.first_outside(self._construction.instruction(operand)) is None

    def compute_constant(self, operand: Handle, output_layout: Layout | None = None) -> GlobalData:
        """The value of `operand`, computed now, by the evaluator. Raises at once.

        With random numbers in it each call may give another value. `output_layout`: of the result's shape.

        builder_c8: it depends on no parameter, and on nothing from outside.
        """
        with self._raising("compute_constant", operand):
            return constants.computed(self._construction.instruction(operand), output_layout)

    # ---- sub-builders, the end

    def create_sub_builder(self: B, computation_name: str) -> B:
        """A builder for a computation that this builder will use. It dies on errors if this one does."""
        sub = type(self)(computation_name, client=self._client)
        sub._parent = self
        sub._dies = self._dies
        return sub

    def set_return_value(self, operand: Handle) -> None:
        """Make the computation return `operand` and not the last expression, even if others are enqueued later. A later
        call replaces it."""
        if operand.failed:
            return
        with self._noting("set_return_value", operand):
            self._construction.returned = self._construction.instruction(operand)

    def build(self) -> Computation:
        """The computation of all that was enqueued; it returns the last expression, or the one given to
        `set_return_value`.

        Raises the first error that was noted. A computation with only effects returns an empty tuple. Afterwards the
        builder starts again: handles from before are no longer valid.

        builder_c3: something was enqueued; builder_c4: the parameters are numbered 0 to n-1.
        """
        if self._errors:
            raise self._errors[0]
        with self._noting("build"):
            built = self._construction.finish(self._name)
            self._construction = Construction()
            return Computation(built)
        raise self._errors[0]

    def build_and_note_error(self) -> Computation:
        """As `build`; but an error is noted in the builder that made this one, and the computation is empty.

        For a computation that only the parent uses: operations on it then fail silently.
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

    # ---- errors

    @contextmanager
    def _noting(self, method: str, arguments: object = ()) -> Iterator[None]:
        """Errors inside are noted, or raised at once if `set_die_immediately_on_error` was called."""
        self._construction.method = method
        try:
            yield
        except HloError as error:
            noted = self._described(error, method, arguments)
            if self._dies:
                raise noted from None
            self._errors.append(noted)
        finally:
            self._construction.method = ""

    @contextmanager
    def _raising(self, method: str, *arguments: object) -> Iterator[None]:
        """Errors inside are raised at once, as failed checks are in the seeds' interface."""
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


def _flat(arguments: object) -> Iterator[object]:
    """The items of nested tuples, lists and dictionaries."""
    if isinstance(arguments, dict):
        arguments = list(arguments.values())
    if isinstance(arguments, list | tuple):
        for argument in arguments:
            yield from _flat(argument)
    else:
        yield arguments


def any_failed(arguments: object) -> bool:
    """True if a value or a computation among the (nested) arguments failed."""
    return any(
        (isinstance(a, Handle) and a.failed) or (isinstance(a, Computation) and a.is_null) for a in _flat(arguments)
    )


def _described_argument(argument: object) -> str:
    if isinstance(argument, Handle):
        return "?" if argument.failed else str(argument.shape)
    assert isinstance(argument, Computation)
    return "?" if argument.is_null else argument.name
