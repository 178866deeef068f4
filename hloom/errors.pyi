from .hlo.errors import (
    BytecodeError as BytecodeError, CollectiveError as CollectiveError, CustomCallError as CustomCallError,
    EmptyQueueError as EmptyQueueError, HloParseError as HloParseError, MemoryBudgetError as MemoryBudgetError,
    ScheduleError as ScheduleError, VerificationError as VerificationError,
)
from .tracer.errors import (
    AxisError as AxisError, CompileOptionError as CompileOptionError,
    ConcretizationTypeError as ConcretizationTypeError, DeletedArrayError as DeletedArrayError,
    DerivativeMismatchError as DerivativeMismatchError, ExecutionError as ExecutionError, HloError as HloError,
    InconclusiveDimensionOperation as InconclusiveDimensionOperation, IndexKindError as IndexKindError,
    JAXIndexError as JAXIndexError, JaxprTypeError as JaxprTypeError, JaxRuntimeError as JaxRuntimeError,
    JAXTypeError as JAXTypeError, KeyReuseError as KeyReuseError, NonArrayArgumentError as NonArrayArgumentError,
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError, NonConcreteSliceError as NonConcreteSliceError,
    NonHashableStaticArgumentsError as NonHashableStaticArgumentsError, OperandError as OperandError,
    ShapeError as ShapeError, ShardingTypeError as ShardingTypeError,
    TracerArrayConversionError as TracerArrayConversionError, TracerBoolConversionError as TracerBoolConversionError,
    TracerIntegerConversionError as TracerIntegerConversionError, TreeDefError as TreeDefError,
    TreeStructureError as TreeStructureError, UnboundAxisError as UnboundAxisError,
    UnexpectedTracerError as UnexpectedTracerError, UnsupportedElementTypeError as UnsupportedElementTypeError,
    UnsupportedError as UnsupportedError,
)
