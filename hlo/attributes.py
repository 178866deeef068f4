"""The attribute classes of all opcodes: plain data, one class a kind of op, fields named as in HLO text if it has them.

What the fields must satisfy is checked by the shape rules in `ops/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .ir import Attributes, HloComputation
from .literal import Literal
from .shape import Shape


class ComparisonDirection(Enum):
    EQ = "EQ"
    NE = "NE"
    GE = "GE"
    GT = "GT"
    LE = "LE"
    LT = "LT"


class ComparisonType(Enum):
    """How compare orders values; TOTALORDER puts -NaN < -inf < ... < -0 < +0 < ... < inf < NaN."""

    FLOAT = "FLOAT"
    TOTALORDER = "TOTALORDER"
    SIGNED = "SIGNED"
    UNSIGNED = "UNSIGNED"


class FusionKind(Enum):
    """What shape of loop nest a fusion becomes. The names are XLA's; `kCustom` carries a name of our own in text."""

    LOOP = "kLoop"
    """Element by element over one iteration space."""
    INPUT = "kInput"
    """A nest with one or more reductions in it."""
    OUTPUT = "kOutput"
    CUSTOM = "kCustom"


class RandomAlgorithm(Enum):
    DEFAULT = "rng_default"
    THREEFRY = "rng_three_fry"
    PHILOX = "rng_philox"


@dataclass(frozen=True, slots=True)
class ParameterAttributes(Attributes):
    number: int


@dataclass(frozen=True, slots=True)
class ConstantAttributes(Attributes):
    literal: Literal


@dataclass(frozen=True, slots=True)
class GetTupleElementAttributes(Attributes):
    index: int


@dataclass(frozen=True, slots=True)
class Composite:
    """A call that stands for something HLO has no opcode for: its name and what it needs to be differentiated.

    `parameters` is printed as the composite's attributes. `rule` is a Python object that the transformation of
    that name understands (a custom_jvp's rule, say); it is compared by identity and not printed.
    """

    name: str
    parameters: tuple[tuple[str, str], ...] = ()
    rule: object = None
    version: int = 1


@dataclass(frozen=True, slots=True)
class CallAttributes(Attributes):
    to_apply: HloComputation
    composite: Composite | None = None


@dataclass(frozen=True, slots=True)
class WhileAttributes(Attributes):
    condition: HloComputation
    body: HloComputation


@dataclass(frozen=True, slots=True)
class ConditionalAttributes(Attributes):
    """Branch k is taken for index k; out of range, the last. For a PRED operand, branch 0 is taken when it is true."""

    branch_computations: tuple[HloComputation, ...]


@dataclass(frozen=True, slots=True)
class FusionAttributes(Attributes):
    kind: FusionKind
    calls: HloComputation


@dataclass(frozen=True, slots=True)
class CompareAttributes(Attributes):
    direction: ComparisonDirection
    type: ComparisonType | None = None
    """None: by the operands' element type, as XLA does."""


@dataclass(frozen=True, slots=True)
class BroadcastAttributes(Attributes):
    """Dimension i of the operand is dimension `dimensions[i]` of the result."""

    dimensions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IotaAttributes(Attributes):
    iota_dimension: int


@dataclass(frozen=True, slots=True)
class TransposeAttributes(Attributes):
    """Dimension i of the result is dimension `dimensions[i]` of the operand."""

    dimensions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReverseAttributes(Attributes):
    dimensions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SliceAttributes(Attributes):
    start_indices: tuple[int, ...]
    limit_indices: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PadAttributes(Attributes):
    """Per dimension: elements added before, after (negative: removed), and between neighbours (not negative)."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    interior: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConcatenateAttributes(Attributes):
    dimension: int


@dataclass(frozen=True, slots=True)
class DynamicSliceAttributes(Attributes):
    """Operands: the array, then one scalar start index a dimension (clamped so that the slice fits)."""

    dynamic_slice_sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReduceAttributes(Attributes):
    """Operands: N arrays of equal dimensions, then N scalar init values. `to_apply` takes N + N scalars."""

    dimensions: tuple[int, ...]
    to_apply: HloComputation


@dataclass(frozen=True, slots=True)
class DotAttributes(Attributes):
    """dot_general: the result has the batch dimensions, then lhs's free ones, then rhs's free ones.

    The result's element type may be wider than the operands' (preferred_element_type).
    """

    lhs_batch_dims: tuple[int, ...] = ()
    rhs_batch_dims: tuple[int, ...] = ()
    lhs_contracting_dims: tuple[int, ...] = ()
    rhs_contracting_dims: tuple[int, ...] = ()
    operand_precision: tuple[str, str] = ("default", "default")
    algorithm: str = ""
    """One of `DOT_ALGORITHMS`, e.g. "dot_bf16_bf16_f32"; "" leaves the choice to the compiler."""


@dataclass(frozen=True, slots=True)
class RngBitGeneratorAttributes(Attributes):
    """Operand: the state (u64[2] for threefry). Result: (new state, random bits)."""

    algorithm: RandomAlgorithm


class FftType(Enum):
    FFT = "FFT"
    IFFT = "IFFT"
    RFFT = "RFFT"
    IRFFT = "IRFFT"


class TransposeKind(Enum):
    """What a triangular solve does to its matrix before it solves."""

    NO_TRANSPOSE = "NO_TRANSPOSE"
    TRANSPOSE = "TRANSPOSE"
    ADJOINT = "ADJOINT"


class RandomDistribution(Enum):
    UNIFORM = "rng_uniform"
    """Operands: the lowest value and the one above the highest."""
    NORMAL = "rng_normal"
    """Operands: mean and standard deviation."""
    BERNOULLI = "rng_bernoulli"
    """Operand: the probability of 1. Of the seeds' interface; today's XLA has no text for it."""


class CustomCallSchedule(Enum):
    NONE = "SCHEDULE_NONE"
    EARLIEST = "SCHEDULE_EARLIEST"
    LATEST = "SCHEDULE_LATEST"


class CustomCallApiVersion(Enum):
    UNSPECIFIED = "API_VERSION_UNSPECIFIED"
    ORIGINAL = "API_VERSION_ORIGINAL"
    STATUS_RETURNING = "API_VERSION_STATUS_RETURNING"
    STATUS_RETURNING_UNIFIED = "API_VERSION_STATUS_RETURNING_UNIFIED"
    TYPED_FFI = "API_VERSION_TYPED_FFI"


@dataclass(frozen=True, slots=True)
class WindowDimension:
    """How a window moves along one dimension. Source: XLA's WindowDimension.

    The base area is first dilated (`base_dilation - 1` holes between neighbours), then padded (negative: cropped). The
    window is dilated by `window_dilation`, placed every `stride` elements wherever it fits, and read backwards if
    `reversed`.
    """

    size: int = 1
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    base_dilation: int = 1
    window_dilation: int = 1
    reversed: bool = False


Window = tuple[WindowDimension, ...]


@dataclass(frozen=True, slots=True)
class ConvolutionDimensionNumbers:
    """Which dimension of the operands and of the result is what; XLA's text is `b01f_01io->b01f`."""

    input_batch: int
    input_feature: int
    input_spatial: tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConvolutionAttributes(Attributes):
    """Operands: input and kernel. `window` has one entry a spatial dimension.

    The result's element type may be wider than the operands' (preferred_element_type).
    """

    window: Window
    dimension_numbers: ConvolutionDimensionNumbers
    feature_group_count: int = 1
    batch_group_count: int = 1
    operand_precision: tuple[str, str] = ("default", "default")


@dataclass(frozen=True, slots=True)
class ReduceWindowAttributes(Attributes):
    """Operands: N arrays of equal dimensions, then N scalar init values. `window` has one entry a dimension."""

    window: Window
    to_apply: HloComputation


@dataclass(frozen=True, slots=True)
class SelectAndScatterAttributes(Attributes):
    """Operands: array, source (one element a window), scalar init value. `window` has one entry a dimension."""

    window: Window
    select: HloComputation
    scatter: HloComputation


@dataclass(frozen=True, slots=True)
class ScanAttributes(Attributes):
    """Operands: N arrays, then M initial carries; `to_apply` takes N slices and M carries."""

    dimension: int
    to_apply: HloComputation
    is_reverse: bool = False
    is_associative: bool | None = None
    num_carries: int = 1


@dataclass(frozen=True, slots=True)
class GatherAttributes(Attributes):
    """Operands: the array, and the integer start indices of the slices to take from it."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int
    slice_sizes: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()
    indices_are_sorted: bool = False


@dataclass(frozen=True, slots=True)
class ScatterAttributes(Attributes):
    """Operands: N arrays, the integer indices, N arrays of updates. `to_apply` takes N + N scalars."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    index_vector_dim: int
    to_apply: HloComputation
    input_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()
    indices_are_sorted: bool = False
    unique_indices: bool = False


@dataclass(frozen=True, slots=True)
class SortAttributes(Attributes):
    """Operands: N arrays of equal dimensions. `to_apply` takes 2 N scalars, (a0, b0, a1, b1, ...): is a before b?"""

    dimension: int
    to_apply: HloComputation
    is_stable: bool = False


@dataclass(frozen=True, slots=True)
class TopKAttributes(Attributes):
    """The k largest (or smallest) along the last dimension, and where they stood."""

    k: int
    largest: bool = True


@dataclass(frozen=True, slots=True)
class MapAttributes(Attributes):
    """`to_apply` takes one scalar an operand. `dimensions` are all dimensions, in order."""

    dimensions: tuple[int, ...]
    to_apply: HloComputation


@dataclass(frozen=True, slots=True)
class ReducePrecisionAttributes(Attributes):
    exponent_bits: int
    mantissa_bits: int


@dataclass(frozen=True, slots=True)
class BatchNormAttributes(Attributes):
    epsilon: float
    feature_index: int


@dataclass(frozen=True, slots=True)
class FftAttributes(Attributes):
    """`fft_length`: the transformed sizes, one for each of the last 1 to 3 dimensions (of the real side)."""

    fft_type: FftType
    fft_length: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CholeskyAttributes(Attributes):
    lower: bool = False


@dataclass(frozen=True, slots=True)
class TriangularSolveAttributes(Attributes):
    left_side: bool = False
    lower: bool = False
    unit_diagonal: bool = False
    transpose_a: TransposeKind = TransposeKind.NO_TRANSPOSE


@dataclass(frozen=True, slots=True)
class RaggedDotAttributes(Attributes):
    """Operands: lhs, rhs, group sizes. As dot, but for one lhs dimension, of which each group has its own rhs."""

    dot: DotAttributes
    lhs_ragged_dims: tuple[int, ...] = ()
    rhs_group_dims: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RngAttributes(Attributes):
    distribution: RandomDistribution


@dataclass(frozen=True, slots=True)
class RngGetAndUpdateStateAttributes(Attributes):
    """The result is the process's 128-bit state (u64[2], low word first, or u64[1]) before `delta` is added to it."""

    delta: int


@dataclass(frozen=True, slots=True)
class OutputOperandAlias:
    """Leaf `output_index` of a custom call's result lies in the buffer of leaf `operand_index` of operand `operand`."""

    output_index: tuple[int, ...]
    operand: int
    operand_index: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CustomCallAttributes(Attributes):
    """A call of code that has a name only: `custom_call_target`, looked up in the registry of custom calls."""

    custom_call_target: str
    backend_config: str = ""
    """For API_VERSION_TYPED_FFI an MLIR dictionary, else any text."""
    api_version: CustomCallApiVersion = CustomCallApiVersion.ORIGINAL
    has_side_effect: bool = False
    callees: tuple[HloComputation, ...] = ()
    operand_layout_constraints: tuple[Shape, ...] | None = None
    output_to_operand_aliasing: tuple[OutputOperandAlias, ...] = ()
    schedule: CustomCallSchedule = CustomCallSchedule.NONE


@dataclass(frozen=True, slots=True)
class DimensionAttributes(Attributes):
    """One dimension: of get- and set-dimension-size."""

    dimension: int


@dataclass(frozen=True, slots=True)
class DomainAttributes(Attributes):
    """What separates two domains, as text: `{kind="sharding", entry={...}, exit={...}}`."""

    domain: str


@dataclass(frozen=True, slots=True)
class AsyncAttributes(Attributes):
    """`calls` runs in between start and done; only the start names it."""

    calls: HloComputation | None = None
    async_execution_thread: str = "main"


@dataclass(frozen=True, slots=True)
class InfeedAttributes(Attributes):
    """Operand: a token. Result: (what was fed in, token)."""

    infeed_config: str = ""


@dataclass(frozen=True, slots=True)
class OutfeedAttributes(Attributes):
    """Operands: the value to feed out, a token. Result: a token."""

    outfeed_shape: Shape | None = None
    outfeed_config: str = ""


@dataclass(frozen=True, slots=True)
class ChannelAttributes(Attributes):
    """Of send, recv and their -done halves."""

    channel_id: int | None = None
    is_host_transfer: bool = False


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """Which devices do a collective together; no group: all of them in one. `text` is how it was written."""

    groups: tuple[tuple[int, ...], ...] = ()
    text: str = "{}"


@dataclass(frozen=True, slots=True)
class CollectiveAttributes(Attributes):
    """Of all collectives; a field that an opcode has no use for keeps its default."""

    replica_groups: ReplicaGroups = ReplicaGroups()
    channel_id: int | None = None
    use_global_device_ids: bool = False
    constrain_layout: bool = False
    dimension: int | None = None
    """all-gather, reduce-scatter: along which arrays are joined or cut; all-to-all: None for the tuple form."""
    to_apply: HloComputation | None = None
    """all-reduce, reduce-scatter."""
    source_target_pairs: tuple[tuple[int, int], ...] = ()
    """collective-permute."""
    slice_sizes: tuple[tuple[int, ...], ...] = ()
    """collective-permute of slices."""
