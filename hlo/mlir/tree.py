"""MLIR's structure, as far as programs in StableHLO use it: text and bytecode are read into it and written from it.

Values are compared by identity, types and attributes by content. Untyped attributes are Python's own values: `bool`,
`str`, a tuple (an array attribute), a dictionary; the others have a class here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ..element_type import ElementType

DYNAMIC = -1
"""The size of a dimension that is written `?`."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """`tensor<2x?xf32, encoding>`. `element` is a Quantized for `!quant.uniform<...>`, IndexType for `index`, and
    OtherType for a type that HLO lacks, e.g. `f6E2M3FN`."""

    dimensions: tuple[int, ...]
    element: ElementType | Quantized | IndexType | OtherType
    encoding: Attribute | None = None


@dataclass(frozen=True, slots=True)
class Quantized:
    """A quantized element type; `text` is all of it, as it is written."""

    text: str


@dataclass(frozen=True, slots=True)
class Token:
    """`!stablehlo.token`."""


@dataclass(frozen=True, slots=True)
class Tuple:
    """`tuple<T, ...>`."""

    elements: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """`(T, ...) -> (T, ...)`."""

    inputs: tuple[Type, ...]
    results: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class IndexType:
    """`index`."""


@dataclass(frozen=True, slots=True)
class NoneType:
    """`none`."""


@dataclass(frozen=True, slots=True)
class OtherType:
    """A type that programs here have no use for, e.g. `!stablehlo.future<...>` or `memref<...>`: its text."""

    text: str


# A scalar type, as in the type of an attribute, is an ElementType: `i32` is S32, `ui32` U32, `i1` PRED.
Type: TypeAlias = "Tensor | ElementType | Quantized | Token | Tuple | Function | IndexType | NoneType | OtherType"


@dataclass(frozen=True, slots=True)
class Unit:
    """An attribute that says something by being there."""


@dataclass(frozen=True, slots=True)
class Integer:
    """`3 : i64`."""

    value: int
    type: ElementType | IndexType


@dataclass(frozen=True, slots=True)
class Float:
    """`1.0 : f32`. `bits` is the pattern of the number in its type, so that NaNs keep their payload."""

    bits: int
    type: ElementType


@dataclass(frozen=True, slots=True)
class Symbol:
    """`@main`, or `@outer::@inner`: one name for each level."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TypeAttribute:
    """A type in the place of an attribute."""

    type: Type


@dataclass(frozen=True, slots=True)
class DenseArray:
    """`array<i64: 1, 2>`."""

    element: ElementType
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """`dense<...> : tensor<...>`. `array` has the type's dimensions and dtype; for one value that fills a tensor its
    strides are zeros."""

    type: Tensor
    array: np.ndarray[Any, Any]

    @property
    def is_splat(self) -> bool:
        """All elements are one value in memory."""
        return self.array.size > 0 and not any(self.array.strides)


@dataclass(frozen=True, slots=True)
class Enumerated:
    """`#stablehlo<comparison_direction LT>`: dialect "stablehlo", kind "comparison_direction", value "LT"."""

    dialect: str
    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class Record:
    """`#stablehlo.gather<offset_dims = [0], index_vector_dim = 1>`: dialect "stablehlo", kind "gather". The value of a
    field is an int, a bool, a string, an attribute, or a tuple of these. A field that is not written is missing: of
    dot, gather and scatter, lists that are empty and numbers that are 0; of result_accuracy, numbers that are 0.

    A `conv` has nine fields, `input_batch_dimension`, `input_spatial_dimensions` and so on. The only field of
    `#stablehlo.bounds<4, ?>` is `bounds`, with DYNAMIC for `?`. Numbers such as `atol` are Float of type F64, types are
    TypeAttribute, and a type that HLO lacks is OtherType, e.g. `tf32`."""

    dialect: str
    kind: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Opaque:
    """An attribute of a dialect that is known by its text only, e.g. `#sdy.sharding<@mesh, [{"x"}]>`: all of it."""

    dialect: str
    text: str


Attribute: TypeAlias = (
    "bool | str | tuple[Attribute, ...] | dict[str, Attribute] | Unit | Integer | Float | Symbol | TypeAttribute | "
    "DenseArray | Dense | Enumerated | Record | Opaque"
)


@dataclass(frozen=True, slots=True)
class Location:
    """Where an operation comes from: the name of a `NameLoc`, and the innermost place in a file."""

    name: str = ""
    file: str = ""
    line: int = 0
    column: int = 0


@dataclass(slots=True, eq=False)
class Value:
    """The result of an operation, or an argument of a block."""

    type: Type
    name: str = ""
    """Without `%`; "" lets the writer choose one."""


@dataclass(slots=True, eq=False)
class Block:
    """Arguments and operations; the last operation is the terminator."""

    arguments: list[Value] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    argument_locations: list[Location | None] = field(default_factory=list)
    """One for each argument, or none at all."""


@dataclass(slots=True, eq=False)
class Region:
    """StableHLO's regions have one block."""

    blocks: list[Block] = field(default_factory=list)

    @property
    def block(self) -> Block:
        """The only block."""
        (block,) = self.blocks
        return block


@dataclass(slots=True, eq=False)
class Operation:
    """An operation with its full name, e.g. `stablehlo.add`, `func.func`, `builtin.module`.

    A function's name and type are its attributes `sym_name` and `function_type`, as in the generic form.
    """

    name: str
    operands: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)
    location: Location | None = None
    position: int = 0
    """Where it was read: the offset in the text or the bytes, for messages."""


def function_type(function: Operation) -> Function:
    """The type that a `func.func` declares."""
    declared = function.attributes["function_type"]
    assert isinstance(declared, TypeAttribute) and isinstance(declared.type, Function), f"{declared} is no such type"
    return declared.type


def operations(top: Operation) -> Iterator[Operation]:
    """An operation and all in its regions, callers first."""
    waiting = [top]
    while waiting:
        operation = waiting.pop()
        yield operation
        inner = [o for region in operation.regions for block in region.blocks for o in block.operations]
        waiting += reversed(inner)
