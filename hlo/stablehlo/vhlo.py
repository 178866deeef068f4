"""StableHLO's portable bytecode, as `jax.export` and `stablehlo.serialize_portable_artifact` write it, to and from
operations.

The file has operations of VHLO in the version of its writer. The table in `vhlo_ops.py` says how StableHLO has them.
`read_bytecode` gives the tree that MLIR's parser gives for the text of the program, and `write_bytecode` writes the
bytes that StableHLO's serializer writes. Source: stablehlo/dialect/Serialization.cpp, and the passes that the table
names.
"""

from __future__ import annotations

import re
from typing import Any

from ..element_type import ElementType
from ..errors import BytecodeError, UnsupportedError
from ..mlir.builtin_bytecode import Builtin
from ..mlir.bytecode_fields import Dialect
from ..mlir.bytecode_reader import read_file
from ..mlir.bytecode_writer import CAST, write_file
from ..mlir.tree import (
    Attribute,
    Block,
    Dense,
    DenseArray,
    Integer,
    Operation,
    Record,
    Region,
    Symbol,
    Tensor,
    TypeAttribute,
    Unit,
    Value,
)
from .sdy_bytecode import Sdy
from .vhlo_codings import ApiVersion, TooNewError, Vhlo
from .vhlo_ops import ACCURACY, CURRENT, EMPTY_TENSOR, NO_VALUE, OPS, ZERO_PAIRS, Group, Kind, Op, Plain, split_name

_OLDEST = (0, 9)
_FIRST_STABLE = (1, 0)
"""Since this version a file is readable for five years. Older readers exist no more."""
_FUNCTION_OPS = {"func": "func.func", "call": "func.call"}
_BASES = {"func.func": "func", "func.call": "call", "func.return": "return"}
_MOST_NUMBERS = 1 << 12
"""In a list of dimensions."""


def read_bytecode(data: bytes | bytearray | memoryview) -> Operation:
    """The module in a portable artifact of StableHLO 0.9 to 1.20, with operations of StableHLO, func and sdy.

    Constants are arrays on the memory of `data`. BytecodeError, with the offset, if the bytes are damaged;
    UnsupportedError, with the name, for what is not known here.
    """
    top = read_file(data if isinstance(data, bytes) else bytes(data), _dialects())
    if top.name != "builtin.module":
        raise BytecodeError(f"there is {top.name} instead of a module", top.position)
    left: list[tuple[Operation, str]] = [(top, "")]
    while left:
        operation, around = left.pop()
        if operation.name.startswith("vhlo."):
            _to_stablehlo(operation, around)
        for region in operation.regions:
            left += [(inner, operation.name) for block in region.blocks for inner in block.operations]
    _remove_casts(top, {})
    return top


_AS_THEY_ARE = (
    "builtin.module", "sdy.manual_computation", "sdy.mesh", "sdy.reshard", "sdy.return", "sdy.sharding_constraint",
)  # fmt: skip
"""Operations that are written without a form in VHLO."""
_MIXED = (1, 11)
"""Since this version a file may have other dialects."""
def _remove_casts(operation: Operation, values: dict[Value, Value]) -> None:
    """Between operations of VHLO and of another dialect there are casts, of a type to the same one here."""
    for block in (block for region in operation.regions for block in region.blocks):
        kept = []
        for each in block.operations:
            each.operands = [values.get(value, value) for value in each.operands]
            if each.name == CAST and [v.type for v in each.operands] == [v.type for v in each.results]:
                values.update(zip(each.results, each.operands))
            else:
                kept.append(each)
                _remove_casts(each, values)
        block.operations = kept


def _dialects(version: tuple[int, int] | None = None) -> dict[str, Dialect]:
    """The dialects of a file that is read, or that is written for a version."""
    if version is None:
        return {"builtin": Builtin(), "vhlo": Vhlo(), "sdy": Sdy()}
    return {"builtin": Builtin(), "vhlo": Vhlo(version)}


def write_bytecode(module: Operation, version: str = "") -> bytes:
    """A portable artifact for a version of StableHLO, e.g. "1.8.0", from 0.9.0 to 1.20.0. "": the oldest stable version
    that has all that the program uses, so that most readers can read it.

    UnsupportedError, with the name, for what the version or the portable form does not have: an operation of CHLO, an
    attribute that belongs to another dialect's operation, a version that is none.
    """
    if version:
        try:
            return _written(module, _version(version), version)
        except TooNewError as error:
            raise UnsupportedError(f"{error}, not {version}") from None
    wanted = _FIRST_STABLE
    while True:
        try:
            return _written(module, wanted, f"{wanted[0]}.{wanted[1]}.0")
        except TooNewError as error:
            wanted = error.since


def _written(module: Operation, version: tuple[int, int], text: str) -> bytes:
    return write_file(_to_vhlo(module, version), _dialects(version), _format_of(version), f"StableHLO_v{text}")


def _version(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]+)\.([0-9]+)\.([0-9]+)", text)
    version = (int(found[1]), int(found[2])) if found else (-1, -1)
    if not _OLDEST <= version <= CURRENT:
        known = f"{_OLDEST[0]}.{_OLDEST[1]}.0 to {CURRENT[0]}.{CURRENT[1]}.0"
        raise UnsupportedError(f"version {text!r} of StableHLO; known are {known}")
    return version


def _format_of(version: tuple[int, int]) -> int:
    """The version of MLIR's bytecode in which a version of StableHLO is stored."""
    for first_without, number in (((0, 10), 0), ((0, 12), 1), ((0, 14), 3), ((0, 15), 4)):
        if version < first_without:
            return number
    return 6


def _to_stablehlo(operation: Operation, around: str) -> None:
    """Gives an operation its name and its attributes in StableHLO. `around`: the name of the operation around it."""
    found = split_name(operation.name)
    if found is None:
        raise UnsupportedError(f"the operation {operation.name}")
    base, number = found
    try:
        operation.attributes = _attributes_read(operation.attributes, base, number)
    except ValueError as error:
        raise BytecodeError(f"{operation.name}: {error}", operation.position) from None
    if base == "return":
        operation.name = "func.return" if around == "func.func" else "stablehlo.return"
    else:
        operation.name = _FUNCTION_OPS.get(base, f"stablehlo.{base}")


def _attributes_read(stored: dict[str, Attribute], base: str, number: int) -> dict[str, Attribute]:
    op, left = OPS[base], dict(stored)
    if not op.attributes:
        return left
    second = op.second
    found: dict[str, Attribute] = {}
    for each in op.attributes:
        values = [left.pop(name, None) for name in each.stored]
        if number == 1 and second is not None and set(each.stored) <= set(second.added):
            continue
        value = _group_read(each, values) if isinstance(each, Group) else _plain_read(each, values[0])
        if value is not None:
            found[each.name] = value
    if number == 1 and second is not None:
        for name in second.removed:
            left.pop(name, None)
    if base == "custom_call" and ("operand_layouts" in found or "result_layouts" in found):
        for name in ("operand_layouts", "result_layouts"):
            found.setdefault(name, ())
    return dict(sorted((found | left).items()))


def _plain_read(attribute: Plain, value: Any) -> Attribute | None:
    """An attribute; None if it is the default. ValueError if it is missing or of another kind."""
    default = attribute.default
    if default is not None and (value is None or default.is_value(value)):
        return None
    kind, name = attribute.kind, attribute.name
    if kind is Kind.PLAIN and value is not None:
        return value  # type: ignore[no-any-return]
    if kind in (Kind.INTEGERS, Kind.BOOLEANS):
        element = ElementType.S64 if kind is Kind.INTEGERS else ElementType.PRED
        return DenseArray(element, _numbers(name, value, element))
    if kind is Kind.SYMBOL and isinstance(value, str):
        return Symbol((value,))
    if kind is Kind.SYMBOLS and isinstance(value, tuple) and all(isinstance(each, str) for each in value):
        return tuple(Symbol((each,)) for each in value)
    if kind is Kind.FLAG and value is True:
        return Unit()
    if kind is Kind.CHANNEL and isinstance(value, Integer):
        return Record("stablehlo", "channel_handle", {"handle": value.value, "type": 0})
    if kind is Kind.API_VERSION and isinstance(value, Integer):
        return value
    raise ValueError(f"{name} is {'missing' if value is None else 'of another kind'}")


def _numbers(name: str, value: Any, element: ElementType) -> tuple[Any, ...]:
    if not isinstance(value, Dense) or value.type.element is not element or len(value.type.dimensions) != 1:
        raise ValueError(f"{name} is no list")
    if value.array.size > _MOST_NUMBERS:
        raise ValueError(f"{name} has {value.array.size} numbers")
    return tuple(value.array.tolist())


def _group_read(group: Group, values: list[Any]) -> Record | None:
    if group.may_miss and all(value == NO_VALUE for value in values):
        return None
    fields: dict[str, Any] = {}
    for (stored, field, is_list), value in zip(group.items, values):
        if is_list:
            found: Any = () if value is None else _numbers(stored, value, ElementType.S64)
        elif isinstance(value, Integer):
            found = value.value
        elif isinstance(value, (bool, TypeAttribute)):
            found = value
        else:
            raise ValueError(f"{stored} is {'missing' if value is None else 'of another kind'}")
        if not (group.omits and found in ((), 0)):
            fields[field] = found
    return Record("stablehlo", group.kind, fields)


def _to_vhlo(operation: Operation, version: tuple[int, int]) -> Operation:
    """The operation with its name and its attributes in VHLO. Values and locations are shared with the original."""
    dialect, _, base = operation.name.partition(".")
    name, attributes = operation.name, operation.attributes
    if dialect == "sdy" and version < _MIXED:
        raise TooNewError(name, _MIXED)
    if name not in _AS_THEY_ARE:
        base = _BASES.get(name, base)
        op = OPS.get(base)
        if op is None or dialect not in ("stablehlo", "func") or (dialect == "func") != (name in _BASES):
            raise UnsupportedError(f"the operation {name} in StableHLO's portable form")
        number, attributes = _attributes_written(operation, base, op, version)
        name = f"vhlo.{base}_v{number}"
    blocks = [[_block_to_vhlo(each, dialect, version) for each in region.blocks] for region in operation.regions]
    regions = list(map(Region, blocks))
    return Operation(name, operation.operands, operation.results, attributes, regions, operation.location)


def _block_to_vhlo(block: Block, dialect: str, version: tuple[int, int]) -> Block:
    """A block of an operation of a dialect; the arguments of one of sdy have casts after them."""
    operations = _all_to_vhlo(block.operations, version)
    if dialect != "sdy":
        return Block(block.arguments, operations, block.argument_locations)
    arguments = [Value(value.type) for value in block.arguments]
    casts = [Operation(CAST, [inner], [value]) for inner, value in zip(arguments, block.arguments)]
    return Block(arguments, [*casts, *operations], block.argument_locations)


def _all_to_vhlo(operations: list[Operation], version: tuple[int, int]) -> list[Operation]:
    """The operations of a block. Operations of sdy get casts around them, because VHLO does not have their types."""
    found: list[Operation] = []
    for operation in operations:
        made = _to_vhlo(operation, version)
        if not made.name.startswith("sdy."):
            found.append(made)
            continue
        outer, made.results = made.results, [Value(value.type) for value in made.results]
        before = [Operation(CAST, [value], [Value(value.type)]) for value in made.operands]
        made.operands = [cast.results[0] for cast in before]
        found += [*before, made]
        found += [Operation(CAST, [inner], [value]) for inner, value in zip(made.results, outer)]
    return found


def _attributes_written(
    operation: Operation, base: str, op: Op, version: tuple[int, int]
) -> tuple[int, dict[str, Any]]:
    """Which version of an operation is written, and its attributes."""
    _check_version(operation, base, op, version)
    left = dict(operation.attributes)
    if not op.attributes and op.second is None:
        return 1, left
    rank = _windowed(operation, op)
    stored: dict[str, Any] = {}
    for each in op.attributes:
        value = left.pop(each.name, None)
        if isinstance(each, Group):
            stored.update(_group_written(operation, each, value))
        elif value is not None:
            stored[each.stored[0]] = _plain_written(operation, each, value)
        elif each.default is not None:
            stored[each.stored[0]] = _plain_default(operation, each, rank)
        else:
            raise UnsupportedError(f"{operation.name} without its attribute {each.name}")
    stored |= left
    second = op.second
    if second is None:
        return 1, stored
    if version >= second.since:
        return 2, stored
    for name in second.added:
        if not _is_neutral(stored.pop(name)):
            raise TooNewError(f"{operation.name} with {name}", second.since)
    for name in second.removed:
        stored[name] = ZERO_PAIRS.make(rank)
    if second.one_operand and len(operation.operands) != 1:
        raise TooNewError(f"{operation.name} with {len(operation.operands)} operands", second.since)
    if second.no_regions and operation.regions:
        raise TooNewError(f"{operation.name} with regions", second.since)
    return 1, stored


_PROMOTING = ("all_reduce", "reduce", "reduce_scatter", "reduce_window", "scatter", "select_and_scatter")


def _check_version(operation: Operation, base: str, op: Op, version: tuple[int, int]) -> None:
    if version < op.since:
        raise TooNewError(operation.name, op.since)
    if base in _PROMOTING and version < (0, 17):
        elements = [
            [value.type.element for value in values if isinstance(value.type, Tensor)]
            for values in (operation.operands, operation.results)
        ]
        if any(operand != result for operand, result in zip(*elements)):
            raise TooNewError(f"{operation.name} with a result of another type", (0, 17))
    if base == "custom_call" and version < (1, 3):
        has_dictionary = isinstance(operation.attributes.get("backend_config"), dict)
        if has_dictionary or _api_version(operation) == _TYPED_FFI:
            raise TooNewError("a custom call of the typed FFI", (1, 3))


_TYPED_FFI = 4


def _api_version(operation: Operation) -> int:
    found = operation.attributes.get("api_version")
    return found.value if isinstance(found, Integer) else 1


def _windowed(operation: Operation, op: Op) -> int:
    """How many windowed dimensions an operation has."""
    value = operation.attributes.get(op.rank_of)
    if isinstance(value, Record):
        return len(value.fields["input_spatial_dimensions"])
    if isinstance(value, DenseArray):
        return len(value.values)
    return value.array.size if isinstance(value, Dense) else 0


def _plain_default(operation: Operation, attribute: Plain, rank: int) -> Any:
    assert attribute.default is not None
    if attribute.kind is Kind.API_VERSION:
        return ApiVersion(1)
    if attribute.name == "backend_config" and _api_version(operation) == _TYPED_FFI:
        return {}
    return attribute.default.make(rank)


def _plain_written(operation: Operation, attribute: Plain, value: Any) -> Any:
    kind = attribute.kind
    if kind is Kind.FLAG and isinstance(value, Unit):
        return True
    if kind is Kind.CHANNEL and isinstance(value, Record):
        return Integer(value.fields["handle"], ElementType.S64)
    if kind is Kind.API_VERSION and isinstance(value, Integer):
        return ApiVersion(value.value)
    if kind in (Kind.FLAG, Kind.CHANNEL, Kind.API_VERSION):
        raise UnsupportedError(f"{operation.name} with {attribute.name} = {value}")
    return value


def _group_written(operation: Operation, group: Group, record: Any) -> dict[str, Any]:
    if record is None and group.may_miss:
        return dict.fromkeys(group.stored, NO_VALUE)
    if not isinstance(record, Record):
        raise UnsupportedError(f"{operation.name} without its attribute {group.name}")
    found: dict[str, Any] = {}
    for stored, field, is_list in group.items:
        value = record.fields.get(field, () if is_list else 0)
        if is_list:
            value = DenseArray(ElementType.S64, value)
        elif isinstance(value, int) and not isinstance(value, bool):
            value = Integer(value, ElementType.S64)
        found[stored] = value
    return found


def _is_neutral(value: Any) -> bool:
    """Whether an attribute says what an older version means without it."""
    return value in ((), False, NO_VALUE) or EMPTY_TENSOR.is_value(value) or ACCURACY.is_value(value)
