"""`hloom.errors`: every error class for users, under JAX's names where it has them."""

from .hlo.errors import CollectiveError, CustomCallError, EmptyQueueError, HloParseError, VerificationError
from .namespaces import publish as _publish
from .tracer import errors as _errors
from .tracer.errors import (
    AxisError as AxisError,
    CompileOptionError as CompileOptionError,
    ConcretizationTypeError as ConcretizationTypeError,
    DeletedArrayError as DeletedArrayError,
    DerivativeMismatchError as DerivativeMismatchError,
    ExecutionError as ExecutionError,
    HloError as HloError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation,
    IndexKindError as IndexKindError,
    JAXIndexError as JAXIndexError,
    JAXTypeError as JAXTypeError,
    JaxRuntimeError as JaxRuntimeError,
    JaxprTypeError as JaxprTypeError,
    KeyReuseError as KeyReuseError,
    NonArrayArgumentError as NonArrayArgumentError,
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
    NonConcreteSliceError as NonConcreteSliceError,
    NonHashableStaticArgumentsError as NonHashableStaticArgumentsError,
    OperandError as OperandError,
    ShapeError as ShapeError,
    TracerArrayConversionError as TracerArrayConversionError,
    TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError,
    TreeDefError as TreeDefError,
    TreeStructureError as TreeStructureError,
    UnboundAxisError as UnboundAxisError,
    UnexpectedTracerError as UnexpectedTracerError,
    UnsupportedElementTypeError as UnsupportedElementTypeError,
    UnsupportedError as UnsupportedError,
)

__all__ = ["CollectiveError", "CustomCallError", "EmptyQueueError", "HloParseError", "VerificationError"]
__all__ += _errors.__all__

_publish(__name__)
