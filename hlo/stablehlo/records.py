"""How StableHLO's attributes are written: `#stablehlo.gather<offset_dims = [0], index_vector_dim = 1>`.

Source: the dialects' declarations (StablehloAttrs.td, ChloOps.td) and their printers. In the tree each is a Record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..mlir.attribute_reader import AttributeFormat, AttributeReader
from ..mlir.attribute_writer import bounds_text, type_text
from ..mlir.elements import float_text
from ..mlir.tree import DYNAMIC, Attribute, Dense, Enumerated, Float, Integer, Record, Symbol, TypeAttribute
from .record_fields import CONVOLUTION, DOT, DOT_ALGORITHM, GATHER, SCATTER

Written = Callable[[Attribute], str]


class Fields:
    """`<name = value, ...>`. `sparse`: fields that are 0 or empty are left out. `always`: those that are not."""

    def __init__(self, name: str, *fields: str, sparse: bool = False, always: Sequence[str] = ()) -> None:
        self._dialect, _, self._kind = name.partition(".")
        self._fields = fields
        self._sparse, self._always = sparse, always

    def read(self, reader: AttributeReader) -> Record:
        reader.expect("<")
        return self.inside(reader)

    def inside(self, reader: AttributeReader) -> Record:
        """The attribute after its `<`."""
        found: dict[str, Any] = {}
        seen: set[str] = set()
        while not reader.accept(">"):
            start = reader.index
            name = reader.word("the name of a field")
            if name not in self._fields:
                raise reader.expected(f"one of {', '.join(self._fields)}", start)
            if name in seen:
                raise reader.error(f"the field {name} is given twice", start)
            reader.expect("=")
            value = _value(reader)
            seen.add(name)
            if not self._is_left_out(name, value):
                found[name] = value
            if not reader.accept(","):
                reader.expect(">")
                break
        return Record(self._dialect, self._kind, found)

    def write(self, record: Record, written: Written) -> str:
        return f"#{self._dialect}.{self._kind}{self.bare(record, written)}"

    def bare(self, record: Record, written: Written) -> str:
        """The attribute without its name: `<...>`."""
        texts = []
        for name in self._fields:
            value = record.fields.get(name, 0)
            if not self._is_left_out(name, value):
                texts.append(f"{name} = {_text(value, written)}")
        return f"<{', '.join(texts)}>"

    def _is_left_out(self, name: str, value: Any) -> bool:
        if not self._sparse or name in self._always:
            return False
        return value.bits == 0 if isinstance(value, Float) else value in (0, ())


class Optional(Fields):
    """Fields that are written if they are there."""

    def bare(self, record: Record, written: Written) -> str:
        fields = [(name, record.fields[name]) for name in self._fields if name in record.fields]
        return f"<{', '.join(f'{name} = {_text(value, written)}' for name, value in fields)}>"


def _value(reader: AttributeReader) -> Any:
    """A number, a list of sizes or of attributes, true or false, a type, a name, or an attribute of a dialect."""
    token = reader.next
    if token == "[":
        reader.index += 1
        item = reader.attribute if reader.next[:1] == "#" else lambda: _size(reader)
        return tuple(reader.comma_list("]", item))
    if token == "(":
        return _sub_axis(reader)
    if token.lstrip("-").isdecimal():
        return reader.integer("a number")
    if token[:1] == "#" or token in ("true", "false"):
        return reader.attribute()
    if reader.is_type():
        return TypeAttribute(reader.type())
    start = reader.index
    found = reader.attribute()
    if not isinstance(found, Float | str | Symbol | Dense):
        raise reader.expected("a number, a list, a type, a name, true or false", start)
    return found


def _sub_axis(reader: AttributeReader) -> Record:
    """`(1)2`, a part of the axis of a mesh."""
    reader.expect("(")
    before = reader.integer("a number")
    reader.expect(")")
    return Record("stablehlo", _SUB_AXIS, {"pre_size": before, "size": reader.integer("a number")})


_SUB_AXIS = "sub_axis_info"


def _size(reader: AttributeReader) -> int:
    return DYNAMIC if reader.accept("?") else reader.integer("a number")


def _text(value: Any, written: Written) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple):
        return f"[{', '.join('?' if each == DYNAMIC else _text(each, written) for each in value)}]"
    if isinstance(value, Record) and value.kind == _SUB_AXIS:
        return f"({value.fields['pre_size']}){value.fields['size']}"
    if isinstance(value, TypeAttribute):
        return type_text(value.type)
    if isinstance(value, Float):
        return float_text(value.bits, value.type)
    if isinstance(value, Integer):
        return str(value.value)
    return written(value)


class _Bounds:
    """`#stablehlo.bounds<4, ?>`, of a tensor type."""

    def read(self, reader: AttributeReader) -> Record:
        reader.expect("<")
        return Record("stablehlo", "bounds", {"bounds": tuple(reader.comma_list(">", lambda: _size(reader)))})

    def write(self, record: Record, written: Written) -> str:
        return bounds_text(record)


class _TypeExtensions(Fields):
    """`#stablehlo.type_extensions<bounds = [4, ?]>`, which is printed as bounds."""

    def inside(self, reader: AttributeReader) -> Record:
        return Record("stablehlo", "bounds", super().inside(reader).fields)


class Convolution(Fields):
    """`#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`: the places of the dimensions of the input,
    of the kernel and of the output. After the word `raw` the fields are written instead."""

    def read(self, reader: AttributeReader) -> Record:
        reader.expect("<")
        if reader.accept("raw"):
            return self.inside(reader)
        record = read_convolution_dimensions(reader)
        reader.expect(">")
        return record

    def write(self, record: Record, written: Written) -> str:
        text = convolution_dimensions_text(record)
        return f"#stablehlo.conv<raw {self.bare(record, written)[1:]}" if text is None else f"#stablehlo.conv<{text}>"


_SIDES = (("input", "b", "f"), ("kernel", "i", "o"), ("output", "b", "f"))
_LETTERS = {
    ("input", "b"): "input_batch_dimension", ("input", "f"): "input_feature_dimension",
    ("kernel", "i"): "kernel_input_feature_dimension", ("kernel", "o"): "kernel_output_feature_dimension",
    ("output", "b"): "output_batch_dimension", ("output", "f"): "output_feature_dimension",
}  # fmt: skip


def read_convolution_dimensions(reader: AttributeReader) -> Record:
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""
    fields: dict[str, Any] = {}
    for (side, *letters), separator in zip(_SIDES, ("x", "->", "")):
        start = reader.index
        reader.expect("[", f"to begin the dimensions of the {side}")
        items = reader.comma_list("]", reader.take)
        spatial = [item for item in items if item.isascii() and item.isdecimal()]
        numbers = sorted(int(item) if len(item) < 4 else len(items) for item in spatial)
        if numbers != list(range(len(spatial))) or sorted(set(items) - set(spatial)) != sorted(letters) or (
            len(items) != len(spatial) + 2
        ):
            what = f"expected {letters[0]}, {letters[1]} and the numbers from 0 on, each once, for the {side}"
            raise reader.error(what, start)
        for letter in letters:
            fields[_LETTERS[side, letter]] = items.index(letter)
        fields[f"{side}_spatial_dimensions"] = tuple(items.index(str(number)) for number in numbers)
        if separator:
            reader.expect(separator)
    return Record("stablehlo", "conv", fields)


def convolution_dimensions_text(record: Record) -> str | None:
    """The text that `read_convolution_dimensions` reads; None if a place has no dimension, or two."""
    texts = []
    for side, *letters in _SIDES:
        spatial = record.fields.get(f"{side}_spatial_dimensions", ())
        places = {record.fields.get(_LETTERS[side, letter], 0): letter for letter in letters}
        places |= {place: str(number) for number, place in enumerate(spatial)}
        if sorted(places) != list(range(len(spatial) + 2)):
            return None
        texts.append("[" + ", ".join(places[place] for place in sorted(places)) + "]")
    return f"{texts[0]}x{texts[1]}->{texts[2]}"


ALGORITHM = Fields("stablehlo.dot_algorithm", *DOT_ALGORITHM)
RECORDS: dict[str, AttributeFormat] = {
    "stablehlo.replica_group_mesh_axes": Fields("stablehlo.replica_group_mesh_axes", "mesh", "axes"),
    "stablehlo.axis_ref": Optional("stablehlo.axis_ref", "name", "sub_axis_info"),
    "stablehlo.mesh_axis": Fields("stablehlo.mesh_axis", "name", "size"),
    "stablehlo.mesh": Optional("stablehlo.mesh", "axes", "device_ids"),
    "stablehlo.scatter": Fields("stablehlo.scatter", *SCATTER, sparse=True),
    "stablehlo.gather": Fields("stablehlo.gather", *GATHER, sparse=True),
    "stablehlo.dot": Fields("stablehlo.dot", *DOT, sparse=True),
    "chlo.ragged_dot": Fields("chlo.ragged_dot", *DOT, "lhs_ragged_dimensions", "rhs_group_dimensions", sparse=True),
    "stablehlo.dot_algorithm": ALGORITHM,
    "stablehlo.conv": Convolution("stablehlo.conv", *CONVOLUTION),
    "stablehlo.output_operand_alias": Fields(
        "stablehlo.output_operand_alias", "output_tuple_indices", "operand_index", "operand_tuple_indices"
    ),
    "stablehlo.channel_handle": Fields("stablehlo.channel_handle", "handle", "type"),
    "stablehlo.bounds": _Bounds(),
    "stablehlo.type_extensions": _TypeExtensions("stablehlo.type_extensions", "bounds"),
    "stablehlo.result_accuracy": Fields(
        "stablehlo.result_accuracy", "atol", "rtol", "ulps", "mode", sparse=True, always=("mode",)
    ),
}
"""The attributes that are records, by the names with which they are written."""


class _DottedEnumeration:
    """`#stablehlo.result_accuracy_mode<DEFAULT>`."""

    def __init__(self, name: str) -> None:
        self._dialect, _, self._kind = name.partition(".")

    def read(self, reader: AttributeReader) -> Enumerated:
        reader.expect("<")
        value = reader.word("a mode")
        reader.expect(">")
        return Enumerated(self._dialect, self._kind, value)

    def write(self, attribute: Any, written: Written) -> str:
        raise AssertionError("enumerations are written by `attribute_writer.py`")


RECORDS["stablehlo.result_accuracy_mode"] = _DottedEnumeration("stablehlo.result_accuracy_mode")
