"""How operations are written, as data: `Form("%lhs , %rhs {} : <same>")` both reads and writes an operation.

The parts of a form, with spaces between them:

| part | stands for |
|---|---|
| `%lhs` | one operand |
| `%inputs*` | all operands that no other part names, with commas between them |
| `%inputs*,` | the same, with a comma after each |
| `$name` | an attribute; the form's `attributes` say of which kind it is |
| `{}`, `attributes{}` | the attributes that no other part names |
| `(? ... ?)` | parts that may be missing: they begin with a literal, an attribute or an operand that decides |
| `(? ... ?: ... ?)` | the same, with parts that are there instead |
| `~` | no space here |
| `<same>` | a directive: types, or a part that is written in a special way; see DIRECTIVES here and in other files |
| anything else | itself |

Source: MLIR's declarative assembly format ("Operation Definition Specification").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from ..element_type import ElementType
from ..support.lazy import lazy_property
from .attribute_writer import function_text, results_text, symbol_text, type_text
from .dense import read_float
from .operation_reader import Draft, OperationReader
from .operation_writer import OperationWriter, Unfit
from .tree import (
    Attribute,
    Dense,
    DenseArray,
    Enumerated,
    Float,
    Function,
    Integer,
    Opaque,
    Operation,
    Symbol,
    Tensor,
    Tuple,
    Type,
)


class Part(Protocol):
    """A part of a form."""

    attributes: Sequence[str]
    """The attributes that it writes."""

    def begins(self, token: str) -> bool:
        """The part is there if this token comes next."""

    def read(self, reader: OperationReader, draft: Draft) -> None: ...

    def is_present(self, operation: Operation) -> bool:
        """An operation has what the part writes."""

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None: ...


class Values:
    """The operands that are still to be written; the variable part of a form gets all but `single`."""

    def __init__(self, operation: Operation, single: int) -> None:
        self._operands = operation.operands
        self._variable = len(operation.operands) - single
        self._at = 0

    def one(self) -> Any:
        if self._at == len(self._operands):
            raise Unfit
        self._at += 1
        return self._operands[self._at - 1]

    def many(self) -> Sequence[Any]:
        if self._variable < 0:
            raise Unfit
        self._at += self._variable
        return self._operands[self._at - self._variable : self._at]

    def are_written(self) -> bool:
        return self._at == len(self._operands)


class _Literal:
    attributes: ClassVar[Sequence[str]] = ()

    def __init__(self, text: str) -> None:
        self._text = text

    def begins(self, token: str) -> bool:
        return token == self._text

    def read(self, reader: OperationReader, draft: Draft) -> None:
        reader.expect(self._text)

    def is_present(self, operation: Operation) -> bool:
        return True

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        writer.literal(self._text)


class _Glue(_Literal):
    def read(self, reader: OperationReader, draft: Draft) -> None:
        pass

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        writer.glue()


class _Operand(_Literal):
    def begins(self, token: str) -> bool:
        return token[:1] == "%"

    def read(self, reader: OperationReader, draft: Draft) -> None:
        draft.operands.append(reader.operand())

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        writer.item(writer.name(values.one()))


class _Operands(_Operand):
    def read(self, reader: OperationReader, draft: Draft) -> None:
        draft.operands += reader.operands()

    def is_present(self, operation: Operation) -> bool:
        return bool(operation.operands)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        writer.item(writer.values(values.many()))


class _OperandsWithCommas(_Operand):
    def read(self, reader: OperationReader, draft: Draft) -> None:
        while reader.next[:1] == "%":
            draft.operands.append(reader.operand())
            reader.expect(",", "after a value")

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        writer.item(writer.values(values.many()) + ",")


class _Attribute(_Literal):
    """An attribute of a known kind: see KINDS."""

    def __init__(self, name: str, kind: str, dialect: str) -> None:
        self.attributes = (name,)  # type: ignore[misc]
        self._name, self._dialect = name, dialect
        self._kind, _, self._detail = kind.partition(":")

    def begins(self, token: str) -> bool:
        raise AssertionError("an optional part of a form begins with a literal or an operand")

    def read(self, reader: OperationReader, draft: Draft) -> None:
        draft.attributes[self._name] = KINDS[self._kind][0](reader, self._dialect, self._detail)

    def is_present(self, operation: Operation) -> bool:
        return self._name in operation.attributes

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        value = operation.attributes.get(self._name)
        _, kind, text = KINDS[self._kind]
        if not isinstance(value, kind):
            raise Unfit
        writer.item(text(writer, value, self._detail))


def _read_integer(reader: OperationReader, dialect: str, detail: str) -> Attribute:
    kind = _TYPES[detail]
    return Integer(reader.integer("the number", kind.limits), kind)


_TYPES = {"i64": ElementType.S64, "i32": ElementType.S32, "ui64": ElementType.U64, "ui32": ElementType.U32}


def _read_float(reader: OperationReader, *_: str) -> Attribute:
    """A number without its type, which is f64."""
    token = reader.next
    start = reader.index
    reader.index += 1
    try:
        return Float(read_float(token, ElementType.F64), ElementType.F64)
    except ValueError:
        raise reader.expected("a number such as 1.0", start) from None


def read_integers(reader: OperationReader, *_: str) -> DenseArray:
    """`[0, 1]`."""
    reader.expect("[", "to begin a list")
    return DenseArray(ElementType.S64, tuple(reader.comma_list("]", lambda: reader.integer("a number"))))


def _read_enumerated(reader: OperationReader, dialect: str, detail: str) -> Attribute:
    return Enumerated(dialect, detail, reader.word(f"a word for the {detail.replace('_', ' ')}"))


def _read_bool(reader: OperationReader, *_: str) -> Attribute:
    word = reader.word("true or false")
    if word not in ("true", "false"):
        raise reader.expected("true or false", reader.index - 1)
    return word == "true"


def _read_string(reader: OperationReader, *_: str) -> Attribute:
    return reader.string("a string")


def _read_symbol_name(reader: OperationReader, *_: str) -> Attribute:
    return reader.symbol("a name such as @f")


def _read_symbol(reader: OperationReader, *_: str) -> Attribute:
    return reader.symbol_reference()


def _read_elements(reader: OperationReader, *_: str) -> Attribute:
    start = reader.index
    found = reader.attribute()
    if not isinstance(found, Dense):
        raise reader.expected("a literal such as dense<0> : tensor<i32>", start)
    return found


def _plain(writer: OperationWriter, value: Attribute, detail: str) -> str:
    return writer.plain(value)


def _read_text(reader: OperationReader, dialect: str, detail: str) -> Attribute:
    """An attribute that is known by its text, of which the form leaves out the beginning and the end."""
    before, _, after = detail.partition("~")
    return Opaque(dialect, before + reader.balanced(reader.starts[reader.index]) + after)


def _text(value: Opaque, detail: str) -> str:
    before, _, after = detail.partition("~")
    if not (value.text.startswith(before) and value.text.endswith(after)):
        raise Unfit
    return value.text[len(before) : len(value.text) - len(after)]


def _read_word(reader: OperationReader, dialect: str, detail: str) -> Attribute:
    words = detail.split(",")
    start = reader.index
    word = reader.word(f"one of {', '.join(words)}")
    if word not in words:
        raise reader.expected(f"one of {', '.join(words)}", start)
    return Integer(words.index(word), ElementType.S32)


def _word(value: Integer, detail: str) -> str:
    words = detail.split(",")
    if not 0 <= value.value < len(words):
        raise Unfit
    return words[value.value]


def _read_any(reader: OperationReader, *_: str) -> Attribute:
    return reader.attribute()


_Kind = tuple[Callable[[OperationReader, str, str], Attribute], Any, Callable[[OperationWriter, Any, str], str]]
KINDS: dict[str, _Kind] = {
    "integer": (_read_integer, Integer, _plain),
    "float": (_read_float, Float, _plain),
    "integers": (read_integers, DenseArray, _plain),
    "enum": (_read_enumerated, Enumerated, _plain),
    "bool": (_read_bool, bool, _plain),
    "string": (_read_string, str, _plain),
    "symbol_name": (_read_symbol_name, str, lambda writer, value, detail: symbol_text(value)),
    "text": (_read_text, Opaque, lambda writer, value, detail: _text(value, detail)),
    "word": (_read_word, Integer, lambda writer, value, detail: _word(value, detail)),
    "symbol": (_read_symbol, Symbol, _plain),
    "elements": (_read_elements, Dense, _plain),
    "any": (_read_any, object, _plain),
}
"""The kinds of attributes in forms: how each is read, its class in the tree, and how it is written. A detail follows a
colon in the table of forms: the type of an integer, the kind of an enumeration, the words that stand for 0, 1, ..., or
the text around what is written, with `~` in its place."""


class _Dictionary(_Literal):
    """The attributes that no other part of the form names."""

    def __init__(self, keyword: str) -> None:
        self._keyword = keyword
        self.form: Form | None = None

    def read(self, reader: OperationReader, draft: Draft) -> None:
        if self._keyword and not reader.accept(self._keyword):
            return
        reader.attribute_dictionary(draft)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        assert self.form is not None
        writer.optional_dictionary(self.form.others(operation), self._keyword)


class _Group(_Literal):
    """Parts that may be missing."""

    def __init__(self, parts: Sequence[Part], otherwise: Sequence[Part]) -> None:
        self._parts, self._otherwise = parts, otherwise
        self.attributes = [name for part in parts for name in part.attributes]  # type: ignore[misc]

    def read(self, reader: OperationReader, draft: Draft) -> None:
        for part in self._parts if self._parts[0].begins(reader.next) else self._otherwise:
            part.read(reader, draft)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        for part in self._parts if all(part.is_present(operation) for part in self._parts) else self._otherwise:
            part.write(writer, operation, values)


class Directive(_Literal):
    """A part with code of its own. `attributes`: those that it writes; `has_regions`: it writes all regions."""

    has_regions: ClassVar[bool] = False

    def __init__(self) -> None:
        pass

    def begins(self, token: str) -> bool:
        raise AssertionError("an optional part of a form begins with a literal or an operand")


# ---- types of operands and results


def _read_types(reader: OperationReader) -> list[Type]:
    found = [reader.type()]
    while reader.accept(","):
        found.append(reader.type())
    return found


def types_text(values: Sequence[Any]) -> str:
    """`T, T`."""
    return ", ".join([type_text(value.type) for value in values])


def function_type_text(operation: Operation) -> str:
    """`(T, T) -> T` for an operation's operands and results."""
    operands = [value.type for value in operation.operands]
    return function_text(operands, [value.type for value in operation.results])


class _FunctionType(Directive):
    """`(T, T) -> T`."""

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.index
        kind = reader.function_type()
        reader.check_types(draft.operands, kind.inputs, start)
        draft.results = kind.results

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        writer.item(function_type_text(operation))


class _ShortType(Directive):
    """One type for all operands and the result, or else a function type. `operand_types`: those that the operands have
    if the result's type stands alone; None if it cannot."""

    def operand_types(self, count: int, result: Type) -> Sequence[Type] | None:
        return [result] * count

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.index
        kind = reader.type()
        if isinstance(kind, Function):
            reader.check_types(draft.operands, kind.inputs, start)
            draft.results = kind.results
            if len(kind.results) != 1:
                raise reader.error(f"{draft.name} has one result, its type {len(kind.results)}", start)
            return
        types = self.operand_types(len(draft.operands), kind)
        if types is None:
            raise reader.error(f"{type_text(kind)} is no type of the result of {draft.name}", start)
        reader.check_types(draft.operands, types, start)
        draft.results = (kind,)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        if len(operation.results) != 1:
            raise Unfit
        result = operation.results[0].type
        operands = [value.type for value in operation.operands]
        short = self.operand_types(len(operands), result) == operands
        writer.item(type_text(result) if short else function_type_text(operation))


class _ComplexType(_ShortType):
    def operand_types(self, count: int, result: Type) -> Sequence[Type] | None:
        if not isinstance(result, Tensor) or not isinstance(result.element, ElementType):
            return None
        if not result.element.is_complex:
            return None
        return [Tensor(result.dimensions, result.element.real, result.encoding)] * count


class _TupleType(_ShortType):
    def operand_types(self, count: int, result: Type) -> Sequence[Type] | None:
        return list(result.elements) if isinstance(result, Tuple) else None

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        if len(operation.results) != 1:
            raise Unfit
        writer.item(type_text(operation.results[0].type))


class _SelectType(Directive):
    """The types of the predicate and of the result, or else a function type."""

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.index
        types = _read_types(reader)
        if len(types) == 1 and isinstance(types[0], Function):
            reader.check_types(draft.operands, types[0].inputs, start)
            draft.results = types[0].results
            return
        if len(types) != 2:
            raise reader.error("expected the types of the predicate and of the result", start)
        reader.check_types(draft.operands, [types[0], types[1], types[1]], start)
        draft.results = types[1:]

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        if len(operation.operands) != 3 or len(operation.results) != 1:
            raise Unfit
        result = operation.results[0].type
        predicate, *others = (value.type for value in operation.operands)
        short = f"{type_text(predicate)}, {type_text(result)}"
        writer.item(short if others == [result, result] else function_type_text(operation))


class _PairwiseType(Directive):
    """The types of the operands, which are those of the results."""

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.index
        draft.results = _read_types(reader)
        reader.check_types(draft.operands, draft.results, start)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        if [value.type for value in operation.operands] != [value.type for value in operation.results]:
            raise Unfit
        writer.item(types_text(operation.operands))


class _OperandTypes(Directive):
    """The types of the operands."""

    def is_present(self, operation: Operation) -> bool:
        return bool(operation.operands)

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.index
        reader.check_types(draft.operands, _read_types(reader), start)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        writer.item(types_text(operation.operands))


class _OperandType(_OperandTypes):
    """One type, which all operands have."""

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.index
        reader.check_types(draft.operands, [reader.type()] * len(draft.operands), start)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        writer.item(type_text(operation.operands[0].type))


class _ResultType(Directive):
    """The type of the only result."""

    def read(self, reader: OperationReader, draft: Draft) -> None:
        draft.results = (reader.type(),)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        if len(operation.results) != 1:
            raise Unfit
        writer.item(type_text(operation.results[0].type))


class _ResultTypes(Directive):
    """`T`, or `(T, T)`."""

    def read(self, reader: OperationReader, draft: Draft) -> None:
        draft.results = reader.result_types()

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        writer.item(results_text(tuple(value.type for value in operation.results)))


DIRECTIVES: dict[str, Directive] = {
    "function": _FunctionType(), "same": _ShortType(), "complex": _ComplexType(), "tuple": _TupleType(),
    "select": _SelectType(), "pairwise": _PairwiseType(), "operands": _OperandTypes(), "operand": _OperandType(),
    "result": _ResultType(), "results": _ResultTypes(),
}  # fmt: skip
"""The directives that only concern types."""


class Form:
    """The form of one operation. `attributes`: all that its declaration has, and the kind of those in the form.
    `defaults`: values of attributes that are not written."""

    def __init__(
        self,
        name: str,
        assembly: str,
        attributes: Mapping[str, str],
        defaults: Mapping[str, Attribute],
        directives: Mapping[str, Directive],
        argument_names: Sequence[str] = (),
        result_names: Sequence[str] = (),
    ) -> None:
        self.name, self._assembly = name, assembly
        self._kinds, self._defaults, self._directives = attributes, defaults, directives
        self._argument_names, self._result_names = argument_names, result_names
        self.properties = frozenset(attributes)

    @lazy_property
    def _parts(self) -> Sequence[Part]:
        words = self._assembly.split()
        return self._compiled(words, 0, ())[0]

    def _compiled(self, words: list[str], at: int, ends: Sequence[str]) -> tuple[list[Part], int]:
        parts: list[Part] = []
        while at < len(words) and words[at] not in ends:
            word = words[at]
            at += 1
            if word == "(?":
                inside, at = self._compiled(words, at, ("?)", "?:"))
                otherwise: list[Part] = []
                if words[at] == "?:":
                    otherwise, at = self._compiled(words, at + 1, ("?)",))
                at += 1
                parts.append(_Group(inside, otherwise))
            else:
                parts.append(self._part(word))
        return parts, at

    def _part(self, word: str) -> Part:
        if word[0] == "%":
            several = _OperandsWithCommas if word[-1] == "," else _Operands
            return several(word) if "*" in word else _Operand(word)
        if word[0] == "$":
            return _Attribute(word[1:], self._kinds[word[1:]], self.name.partition(".")[0])
        if word[-2:] == "{}":
            dictionary = _Dictionary(word[:-2])
            dictionary.form = self
            return dictionary
        if word == "~":
            return _Glue(word)
        if len(word) > 2 and word[0] == "<":
            return self._directives[word[1:-1]]
        return _Literal(word)

    @lazy_property
    def _single(self) -> int:
        return sum(1 for word in self._assembly.split() if word[0] == "%" and "*" not in word)

    @lazy_property
    def _named(self) -> frozenset[str]:
        return frozenset(name for part in self._parts for name in part.attributes)

    @lazy_property
    def _has_regions(self) -> bool:
        return any(getattr(part, "has_regions", False) for part in self._parts)

    def others(self, operation: Operation) -> dict[str, Attribute]:
        """The attributes that no part of the form writes, without those that are the default."""
        named, defaults = self._named, self._defaults
        return {
            name: value for name, value in operation.attributes.items()
            if name not in named and (name not in defaults or value != defaults[name])
        }  # fmt: skip

    def read(self, reader: OperationReader, draft: Draft) -> None:
        if not self._assembly:
            raise reader.only_generic(self.name)
        for part in self._parts:
            part.read(reader, draft)

    def write(self, writer: OperationWriter, operation: Operation) -> None:
        if not self._assembly or (operation.regions and not self._has_regions):
            raise Unfit
        values = Values(operation, self._single)
        for part in self._parts:
            part.write(writer, operation, values)
        if not self._has_regions and not values.are_written():
            raise Unfit

    def result_names(self, operation: Operation) -> Sequence[str]:
        """The names of results that have none: `c` and `cst` for constants, (); or a name for each of several."""
        if len(operation.results) == len(self._result_names):
            return self._result_names
        if self.name != "stablehlo.constant" or len(operation.results) != 1:
            return ()
        kind = operation.results[0].type
        element = kind.element if isinstance(kind, Tensor) else None
        is_integer = isinstance(element, ElementType) and (element.is_integral or element is ElementType.PRED)
        return ("c",) if is_integer else ("cst",)

    def argument_name(self, operation: Operation, number: int) -> str:
        """The name of an argument of a region that has none: the last of the form's names, or of two, for a form with
        inputs and others, the first for the inputs."""
        if len(self._argument_names) == 2:
            sizes = operation.attributes.get("operandSegmentSizes")
            inputs = sizes.values[0] if isinstance(sizes, DenseArray) and sizes.values else 0
            return self._argument_names[number >= inputs]
        return self._argument_names[-1] if self._argument_names else ""
