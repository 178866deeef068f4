"""The errors that users of the tracer meet, by JAX's names. Each names the user's line and gives advice.

Shape and dtype violations are hlo.errors.ShapeError, raised with the user's line added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ..hlo.called import in_numpy_words
from ..hlo.errors import ExecutionError as ExecutionError
from ..hlo.errors import HloError as HloError
from ..hlo.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from ..hlo.errors import JaxRuntimeError as JaxRuntimeError
from ..hlo.errors import ShapeError as ShapeError
from ..hlo.errors import UnsupportedElementTypeError as UnsupportedElementTypeError
from ..hlo.errors import UnsupportedError as UnsupportedError
from ..hlo.library import exceptions_of, set_module

T = TypeVar("T")


class CompileOptionError(JaxRuntimeError, ValueError):
    """A compile option that there is not, or that cannot have this value."""


class _Explained(Exception):
    """An error that has a section in `hloom/errors.md`, and says so at the end of its message."""

    def __str__(self) -> str:
        return f"{super().__str__()}\n  `hloom explain {type(self).__name__}` says more."


class JAXTypeError(_Explained, TypeError):
    """An error in the use of traced values: JAX's name. Raised as one of its subclasses."""


class JAXIndexError(_Explained, IndexError):
    """An error in an index while a function is traced: JAX's name. Raised as one of its subclasses."""


class JaxprTypeError(TypeError):
    """A jaxpr with equations that do not fit together, or do not fit the values that it is evaluated on."""


class ShardingTypeError(Exception):
    """Operands that Explicit axes of a mesh divide in ways that do not fit together, or a result that could be divided
    in several ways: JAX's name."""


class KeyReuseError(JAXTypeError):
    """A random key was used twice: JAX's name. Raised while the setting `jax_debug_key_reuse` is on."""


class ConcretizationTypeError(JAXTypeError):
    """A concrete value was needed where there is only a traced one."""

    unread: Any = None
    """The class of values of unknown size that the error is about, if it has functions of them
    (`hloom/numpy/selections.py`)."""

    def of_elements(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """The result of a function of single elements, in which the error was raised for an argument. Raises the error
        if it has none."""
        if self.unread is None:
            raise self
        found: T = self.unread.of_elements(function, args, kwargs)
        return found

    def of_all(self, function: Callable[..., T], args: Sequence[Any], kwargs: Mapping[str, Any]) -> T:
        """As `of_elements`, for a function that may be a reduction."""
        if self.unread is None:
            raise self
        found: T = self.unread.of_all(function, args, kwargs)
        return found


class TracerBoolConversionError(ConcretizationTypeError):
    """A Python `if`, `while`, `and`, `or`, `not` or `assert` on a traced value."""


class TracerIntegerConversionError(ConcretizationTypeError):
    """A traced value used as a Python integer: an index of a list, a size, a range."""


class TracerArrayConversionError(ConcretizationTypeError):
    """A traced value given to NumPy or to other code that needs numbers."""


class NonConcreteBooleanIndexError(ConcretizationTypeError, JAXIndexError):
    """Indexing by a boolean array: the result's size would depend on values."""


class IndexKindError(IndexError, TypeError):
    """An index that is none of those that arrays take."""


class NonConcreteSliceError(TracerIntegerConversionError, IndexError):
    """A slice with a traced bound: the result's size would depend on values."""


class NonHashableStaticArgumentsError(ValueError):
    """A static argument of a jitted function cannot be hashed."""


class NonArrayArgumentError(TypeError):
    """A transformed function was given, or returned, a value that is neither an array nor a container of arrays."""


class AxisError(ValueError, IndexError):
    """An array has no such dimension. As numpy.exceptions.AxisError."""


class TreeStructureError(TypeError, ValueError):
    """Two containers that must have the same structure (and their arrays the same types) differ."""


class TreeDefError(TypeError, AttributeError):
    """A tree's structure was needed, and something else was given."""


class UnexpectedTracerError(JAXTypeError, ValueError):
    """A traced value was used after (or outside) the transformation that made it: it leaked."""


class OperandError(ShapeError, TypeError):
    """Operands of an operation have shapes or dtypes that do not go together. `label` names the violated rule.

    It is both a ValueError and a TypeError, because JAX raises one in some cases and the other in others.
    """

    def __init__(self, message: str, label: str = "") -> None:
        super().__init__(message)
        self.label = label  # not in the message: it names a rule of HLO, and users call functions

    @classmethod
    def of(cls, error: ShapeError) -> OperandError:
        """The error of a shape rule in the words of those who call functions, without the label."""
        message = str(error).removesuffix(f" [{error.label}]")
        return cls(f"{in_numpy_words(message)}", error.label)


class DeletedArrayError(RuntimeError):
    """An array was used after its memory was given away (donated) or deleted."""


class DerivativeMismatchError(AssertionError):
    """A derivative differs from the finite difference that it is tested against."""

    is_complete = True


class UnboundAxisError(NameError):
    """A collective names an axis over which nothing is mapped here."""


class TypePromotionError(ValueError):
    """Values of dtypes that are not promoted to one another were combined."""


set_module("errors", *(kind for kind in exceptions_of(vars()) if kind is not TypePromotionError))
set_module("dtypes", TypePromotionError)
