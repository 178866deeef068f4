"""The attribute classes of all opcodes: plain data, one class a kind of op, fields named as in HLO text if it has them.

What the fields must satisfy is checked by the shape rules in `ops/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .ir import Attributes, HloComputation
from .literal import Literal


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


@dataclass(frozen=True, slots=True)
class RngBitGeneratorAttributes(Attributes):
    """Operand: the state (u64[2] for threefry). Result: (new state, random bits)."""

    algorithm: RandomAlgorithm
