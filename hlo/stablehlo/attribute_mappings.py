"""Mappings between the attributes of an operation and the fields of an opcode's attribute class.

Most are one attribute for one field. Others are records, which hold several fields, and windows, which are one field
and several attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields as fields_of_class
from typing import Any

from ..element_type import ElementType
from ..errors import UnsupportedError
from ..mlir.tree import Attribute, Enumerated, OtherType, Record, Type, TypeAttribute
from ..ops.declare import REQUIRED
from ..replica_groups import EVERYONE, ReplicaGroups
from ..shape import Shape
from ..support.records import dataclass
from ..window import ConvolutionDimensionNumbers, WindowDimension
from .attributes import (
    BOOLEANS,
    INTEGERS,
    UNIT,
    AttributeConverter,
    read_booleans,
    read_integer,
    read_integers,
    read_table,
    read_word,
    table,
    wrong,
)
from .record_fields import CONVOLUTION

Attributes = Mapping[str, Attribute]
Reader = Callable[[Attributes, Sequence[Shape]], dict[str, Any]]
Writer = Callable[[Any, Sequence[Shape]], dict[str, Attribute]]


@dataclass(frozen=True, slots=True, eq=False)
class AttributeMapping:
    """Some attributes of an operation, and the fields that hold the same."""

    names: tuple[str, ...]
    fields: tuple[str, ...]
    read: Reader
    """The fields' values, from the operation's attributes and the shapes of its operands."""
    write: Writer
    """The attributes, from an object with the fields and the shapes of the operands."""


def one(
    name: str, field: str, converter: AttributeConverter, default: Any = REQUIRED, *, is_new: bool = False
) -> AttributeMapping:
    """The attribute `name` for `field`. It may be missing if there is a default; a field that is None is not
    written. `is_new`: older versions do not know it, so the default is not written."""

    def read(attributes: Attributes, operands: Sequence[Shape]) -> dict[str, Any]:
        found = attributes.get(name)
        if found is None:
            if default is REQUIRED:
                raise UnsupportedError(f"the attribute {name} is missing")
            return {field: default}
        return {field: converter.read(found)}

    def write(fields: Any, operands: Sequence[Shape]) -> dict[str, Attribute]:
        value = getattr(fields, field)
        is_left_out = value is None or (converter is UNIT and not value) or (is_new and value == default)
        return {} if is_left_out else {name: converter.write(value)}

    return AttributeMapping((name,), (field,), read, write)


def renamed(name: str, field: str = "", converter: AttributeConverter = INTEGERS) -> AttributeMapping:
    """The attribute `name` for `field`, by default of the same name: a list of integers, or another converter's."""
    return one(name, field or name, converter)


def record(name: str, kind: str, names: Mapping[str, str], dialect: str = "stablehlo") -> AttributeMapping:
    """`name = #stablehlo.kind<key = [0, 1], index_vector_dim = 1>`; `names`: the field of each key. Empty lists and
    zeros are not written."""

    def read(attributes: Attributes, operands: Sequence[Shape]) -> dict[str, Any]:
        found = attributes.get(name)
        if not isinstance(found, Record):
            raise wrong(found, f"{name} = #{dialect}.{kind}<...>")
        unknown = set(found.fields) - set(names)
        if unknown:
            raise UnsupportedError(f"{name} has unknown fields: {', '.join(sorted(unknown))}")
        values: dict[str, Any] = {}
        for key, field in names.items():
            if key == "index_vector_dim":
                values[field] = read_integer(found.fields.get(key, 0))
            else:
                values[field] = read_integers(found.fields.get(key, ()))
        return values

    def write(fields: Any, operands: Sequence[Shape]) -> dict[str, Attribute]:
        values = {key: getattr(fields, field) for key, field in names.items()}
        return {name: Record(dialect, kind, {key: value for key, value in values.items() if value not in ((), 0)})}

    return AttributeMapping((name,), tuple(names.values()), read, write)


# ---- windows and convolutions


def window(sizes: str, strides: str, base_dilations: str, window_dilations: str) -> AttributeMapping:
    """The field `window`; the names of the attributes for each of its properties. Without a name for sizes it is the
    window of a convolution: it has the sizes of the kernel, and may be reversed. A dilation without a name is 1."""

    def read(attributes: Attributes, operands: Sequence[Shape]) -> dict[str, Any]:
        if sizes:
            extents = read_integers(attributes.get(sizes))
        else:
            numbers = _read_numbers(attributes)
            extents = tuple(operands[1].dimensions[d] for d in numbers.kernel_spatial)
        count = len(extents)

        def listed(name: str, otherwise: Any, read_it: Callable[[object], Any] = read_integers) -> Any:
            found = attributes.get(name) if name else None
            values = [otherwise] * count if found is None else list(read_it(found))
            if len(values) != count:
                raise UnsupportedError(f"{name} has {len(values)} entries for a window of {count} dimensions")
            return values

        flat = read_integers(attributes.get("padding", (0,) * (2 * count)))
        if len(flat) != 2 * count:
            raise UnsupportedError(f"padding has {len(flat)} numbers for a window of {count} dimensions")
        padding = [(flat[2 * d], flat[2 * d + 1]) for d in range(count)]
        columns = zip(
            extents, listed(strides, 1), padding, listed(base_dilations, 1), listed(window_dilations, 1),
            listed("" if sizes else "window_reversal", False, read_booleans), strict=True,
        )  # fmt: skip
        parts = [
            WindowDimension(size, stride, low, high, base, dilation, is_reversed)
            for size, stride, (low, high), base, dilation, is_reversed in columns
        ]
        return {"window": tuple(parts)}

    def write(fields: Any, operands: Sequence[Shape]) -> dict[str, Attribute]:
        parts = fields.window
        found: dict[str, Attribute] = {}
        if sizes:
            found[sizes] = INTEGERS.write([p.size for p in parts])
        for name, values in (
            (strides, [p.stride for p in parts]),
            (base_dilations, [p.base_dilation for p in parts]),
            (window_dilations, [p.window_dilation for p in parts]),
        ):
            if all(value == 1 for value in values):
                continue
            if not name:
                raise UnsupportedError("StableHLO's select_and_scatter has no dilations")
            found[name] = INTEGERS.write(values)
        padding = [(p.padding_low, p.padding_high) for p in parts]
        if any(n != 0 for pair in padding for n in pair):
            found["padding"] = table(padding)
        if any(p.reversed for p in parts):
            found["window_reversal"] = BOOLEANS.write([p.reversed for p in parts])
        return found

    named = [name for name in (sizes, strides, base_dilations, window_dilations) if name]
    return AttributeMapping((*named, "padding", *([] if sizes else ["window_reversal"])), ("window",), read, write)


_NUMBERS = {name: name.removesuffix("s").removesuffix("_dimension") for name in CONVOLUTION}
assert [f.name for f in fields_of_class(ConvolutionDimensionNumbers)] == list(_NUMBERS.values())


def _read_numbers(attributes: Attributes) -> ConvolutionDimensionNumbers:
    found = attributes.get("dimension_numbers")
    if not isinstance(found, Record):
        raise wrong(found, "dimension_numbers = #stablehlo.conv<...>")
    values: list[Any] = []
    for key in _NUMBERS:
        is_list = key.endswith("s")
        value = found.fields.get(key, () if is_list else 0)
        values.append(read_integers(value) if is_list else read_integer(value))
    return ConvolutionDimensionNumbers(*values)


def convolution_numbers() -> AttributeMapping:
    """`dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`"""

    def write(fields: Any, operands: Sequence[Shape]) -> dict[str, Attribute]:
        numbers = fields.dimension_numbers
        numbered: dict[str, Any] = {key: getattr(numbers, field) for key, field in _NUMBERS.items()}
        return {"dimension_numbers": Record("stablehlo", "conv", numbered)}

    field = "dimension_numbers"
    return AttributeMapping((field,), (field,), lambda attributes, operands: {field: _read_numbers(attributes)}, write)


# ---- products


def precision(dialect: str = "stablehlo") -> AttributeMapping:
    """`precision_config = [#stablehlo<precision HIGH>, ...]` for `operand_precision`. An algorithm says all."""

    def read(attributes: Attributes, operands: Sequence[Shape]) -> dict[str, Any]:
        found = attributes.get("precision_config")
        if found is None or found == ():
            return {"operand_precision": ("default", "default")}
        if not isinstance(found, tuple):
            raise wrong(found, "precision_config = [#stablehlo<precision DEFAULT>, ...]")
        values = tuple(read_word(word).lower() for word in found)
        return {"operand_precision": values * 2 if len(values) == 1 else values}

    def write(fields: Any, operands: Sequence[Shape]) -> dict[str, Attribute]:
        algorithm: str = getattr(fields, "algorithm", "")
        if algorithm or set(fields.operand_precision) == {"default"}:
            return {}
        found = tuple(Enumerated(dialect, "precision", word.upper()) for word in fields.operand_precision)
        return {"precision_config": found}

    return AttributeMapping(("precision_config",), ("operand_precision",), read, write)


_E = ElementType
_TF32 = OtherType("tf32")
_ANY_F8 = "any f8"
_ALGORITHMS: dict[str, tuple[Any, Any, int, bool]] = {
    "dot_any_f8_any_f8_f32": (_ANY_F8, _E.F32, 1, False),
    "dot_any_f8_any_f8_f32_fast_accum": (_ANY_F8, _E.F32, 1, True),
    "dot_f16_f16_f16": (_E.F16, _E.F16, 1, False),
    "dot_f16_f16_f32": (_E.F16, _E.F32, 1, False),
    "dot_bf16_bf16_bf16": (_E.BF16, _E.BF16, 1, False),
    "dot_bf16_bf16_f32": (_E.BF16, _E.F32, 1, False),
    "dot_bf16_bf16_f32_x3": (_E.BF16, _E.F32, 3, False),
    "dot_bf16_bf16_f32_x6": (_E.BF16, _E.F32, 6, False),
    "dot_bf16_bf16_f32_x9": (_E.BF16, _E.F32, 9, False),
    "dot_tf32_tf32_f32": (_TF32, _E.F32, 1, False),
    "dot_tf32_tf32_f32_x3": (_TF32, _E.F32, 3, False),
    "dot_f32_f32_f32": (_E.F32, _E.F32, 1, False),
    "dot_f64_f64_f64": (_E.F64, _E.F64, 1, False),
}
"""By XLA's name: the operands' type, the accumulation type, the number of primitive products, and whether accumulation
may be imprecise. Source: XLA's conversion of stablehlo.dot_algorithm."""


def dot_algorithm() -> AttributeMapping:
    """`algorithm = #stablehlo.dot_algorithm<lhs_precision_type = bf16, ...>` for XLA's name of the algorithm."""

    def read(attributes: Attributes, operands: Sequence[Shape]) -> dict[str, Any]:
        found = attributes.get("algorithm")
        if found is None:
            return {"algorithm": ""}
        if not isinstance(found, Record):
            raise wrong(found, "algorithm = #stablehlo.dot_algorithm<...>")
        types = [_type(found.fields.get(f"{side}_precision_type")) for side in ("lhs", "rhs")]
        both = types[0] if types[0] == types[1] else None
        if all(isinstance(t, ElementType) and t.is_floating and t.bit_width == 8 for t in types):
            both = _ANY_F8
        counts = [read_integer(found.fields.get(f"{side}_component_count", 1)) for side in ("lhs", "rhs")]
        asked = (
            both, _type(found.fields.get("accumulation_type")),
            read_integer(found.fields.get("num_primitive_operations", 1)),
            bool(read_integer(found.fields.get("allow_imprecise_accumulation", 0))),
        )  # fmt: skip
        for name, known in _ALGORITHMS.items():
            if known == asked and counts == [1, 1]:
                return {"algorithm": name}
        raise UnsupportedError(f"the dot algorithm {found.fields} is none of {', '.join(_ALGORITHMS)}")

    def write(fields: Any, operands: Sequence[Shape]) -> dict[str, Attribute]:
        if not fields.algorithm:
            return {}
        type_, sums, products, inexact = _ALGORITHMS[fields.algorithm]
        types: list[Type] = [type_, type_]
        if type_ is _ANY_F8:
            types = [o.element if o.element.bit_width == 8 else _E.F8E5M2 for o in operands[:2]]
        values = {
            "lhs_precision_type": TypeAttribute(types[0]),
            "rhs_precision_type": TypeAttribute(types[1]),
            "accumulation_type": TypeAttribute(sums),
            "lhs_component_count": 1,
            "rhs_component_count": 1,
            "num_primitive_operations": products,
            "allow_imprecise_accumulation": inexact,
        }
        return {"algorithm": Record("stablehlo", "dot_algorithm", values)}

    return AttributeMapping(("algorithm",), ("algorithm",), read, write)


def _type(attribute: object) -> object:
    return attribute.type if isinstance(attribute, TypeAttribute) else attribute


# ---- collectives


def replica_groups() -> AttributeMapping:
    """`replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`; groups of different sizes are filled with -1."""

    def read(attributes: Attributes, operands: Sequence[Shape]) -> dict[str, Any]:
        found = attributes.get("replica_groups")
        if found is None:
            return {"replica_groups": EVERYONE}
        if isinstance(found, Record):
            raise UnsupportedError(f"replica groups along axes of a mesh, {found.kind}, are not supported")
        return {"replica_groups": groups_of(read_table(found))}

    def write(fields: Any, operands: Sequence[Shape]) -> dict[str, Attribute]:
        return {"replica_groups": table(fields.replica_groups.groups)}

    return AttributeMapping(("replica_groups",), ("replica_groups",), read, write)


def groups_of(rows: Sequence[Sequence[int]]) -> ReplicaGroups:
    """Replica groups with their text."""
    if not any(rows):
        return EVERYONE
    text = "{" + ",".join("{" + ",".join(map(str, row)) + "}" for row in rows) + "}"
    return ReplicaGroups(tuple(tuple(row) for row in rows), text)


def read_channel(attribute: object) -> int | None:
    """The number of a channel; None if there is none, which is also written as a number that is not positive."""
    if attribute is None:
        return None
    if not isinstance(attribute, Record):
        raise wrong(attribute, "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>")
    number = read_integer(attribute.fields.get("handle", 0))
    return number if number > 0 else None


def channel_handle(number: int, kind: int = 0) -> Record:
    """`#stablehlo.channel_handle<handle = 1, type = 0>`; of a transfer: 1 between devices, 2 to the host, 3 from it."""
    return Record("stablehlo", "channel_handle", {"handle": number, "type": kind})


def channel() -> AttributeMapping:
    """`channel_handle` for `channel_id`."""

    def write(fields: Any, operands: Sequence[Shape]) -> dict[str, Attribute]:
        number = fields.channel_id
        return {} if number is None else {"channel_handle": channel_handle(number)}

    return AttributeMapping(
        ("channel_handle",), ("channel_id",),
        lambda attributes, operands: {"channel_id": read_channel(attributes.get("channel_handle"))}, write,
    )  # fmt: skip


def collective_unit(name: str) -> AttributeMapping:
    """An attribute that says something by being there."""
    return one(name, name, UNIT, False)


def pairs() -> AttributeMapping:
    """`source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>`"""

    def read(attributes: Attributes, operands: Sequence[Shape]) -> dict[str, Any]:
        rows = read_table(attributes.get("source_target_pairs"))
        if any(len(row) != 2 for row in rows):
            raise wrong(attributes.get("source_target_pairs"), "pairs of devices")
        return {"source_target_pairs": tuple((source, target) for source, target in rows)}

    def write(fields: Any, operands: Sequence[Shape]) -> dict[str, Attribute]:
        return {"source_target_pairs": table(fields.source_target_pairs, 2)}

    return AttributeMapping(("source_target_pairs",), ("source_target_pairs",), read, write)
