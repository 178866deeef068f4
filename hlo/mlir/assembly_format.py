"""How operations are written, as data: `AssemblyFormat("%lhs , %rhs {} : <same>")` both reads and writes an operation.

The elements of a format, with spaces between them:

| element | stands for |
|---|---|
| `%lhs` | one operand |
| `%inputs*` | all operands that no other element names, with commas between them |
| `%inputs*,` | the same, with a comma after each |
| `$name` | an attribute; the format's `attributes` state its kind |
| `{}` | the attributes that no other element names |
| `(? ... ?)` | elements that may be missing: they begin with a literal, an attribute or an operand that decides |
| `(? ... ?: ... ?)` | the same, with elements that are there instead |
| `~` | no space here |
| `<same>` | a directive: types (`assembly_types.py`), or an element that is written in a special way |
| anything else | itself |

Source: MLIR's declarative assembly format ("Operation Definition Specification").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from ..element_type import ElementType
from ..support.lazy import lazy_property
from .assembly_attributes import KINDS
from .operation_reader import Draft, OperationReader
from .operation_writer import OperationWriter, Unfit
from .tree import Attribute, DenseArray, Operation, Tensor


class Element(Protocol):
    """An element of a format."""

    @property
    def attributes(self) -> Sequence[str]:
        """The attributes that it writes."""

    def begins(self, token: str) -> bool:
        """The element is there if this token comes next."""

    def read(self, reader: OperationReader, draft: Draft) -> None: ...

    def is_present(self, operation: Operation) -> bool:
        """Whether an operation has the attributes and operands that the element writes."""

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None: ...


class Values:
    """The operands that are still to be written; the variable element of a format gets all but `single`."""

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
    attributes: Sequence[str] = ()

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
        self.attributes = (name,)
        self._name, self._dialect = name, dialect
        self._kind, _, self._detail = kind.partition(":")

    def begins(self, token: str) -> bool:
        raise AssertionError("an optional element of a format begins with a literal or an operand")

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


class _Dictionary(_Literal):
    """The attributes that no other element of the format names."""

    def __init__(self, whole: AssemblyFormat) -> None:
        self._whole = whole

    def read(self, reader: OperationReader, draft: Draft) -> None:
        reader.attribute_dictionary(draft)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        writer.optional_dictionary(self._whole.others(operation))


class _Group(_Literal):
    """Parts that may be missing."""

    def __init__(self, elements: Sequence[Element], otherwise: Sequence[Element]) -> None:
        self._elements, self._otherwise = elements, otherwise
        self.attributes = [name for element in elements for name in element.attributes]

    def read(self, reader: OperationReader, draft: Draft) -> None:
        for element in self._elements if self._elements[0].begins(reader.next) else self._otherwise:
            element.read(reader, draft)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        is_present = all(element.is_present(operation) for element in self._elements)
        for element in self._elements if is_present else self._otherwise:
            element.write(writer, operation, values)


class Directive(_Literal):
    """An element with code of its own. `attributes`: those that it writes; `has_regions`: it writes all regions."""

    has_regions: ClassVar[bool] = False

    def __init__(self) -> None:
        pass

    def begins(self, token: str) -> bool:
        raise AssertionError("an optional element of a format begins with a literal or an operand")


class AssemblyFormat:
    """The format of one operation. `attributes`: all that its declaration has, and the kind of those in the format.
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
        self.properties: frozenset[str] = frozenset(attributes)

    @lazy_property
    def _elements(self) -> Sequence[Element]:
        words = self._assembly.split()
        return self._compiled(words, 0, ())[0]

    def _compiled(self, words: list[str], at: int, ends: Sequence[str]) -> tuple[list[Element], int]:
        elements: list[Element] = []
        while at < len(words) and words[at] not in ends:
            word = words[at]
            at += 1
            if word == "(?":
                inside, at = self._compiled(words, at, ("?)", "?:"))
                otherwise: list[Element] = []
                if words[at] == "?:":
                    otherwise, at = self._compiled(words, at + 1, ("?)",))
                at += 1
                elements.append(_Group(inside, otherwise))
            else:
                elements.append(self._element(word))
        return elements, at

    def _element(self, word: str) -> Element:
        if word[0] == "%":
            several = _OperandsWithCommas if word[-1] == "," else _Operands
            return several(word) if "*" in word else _Operand(word)
        if word[0] == "$":
            return _Attribute(word[1:], self._kinds[word[1:]], self.name.partition(".")[0])
        if word == "{}":
            return _Dictionary(self)
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
        return frozenset(name for element in self._elements for name in element.attributes)

    @lazy_property
    def _has_regions(self) -> bool:
        return any(getattr(element, "has_regions", False) for element in self._elements)

    def others(self, operation: Operation) -> dict[str, Attribute]:
        """The attributes that no element of the format writes, without those that are the default."""
        named, defaults = self._named, self._defaults
        return {
            name: value for name, value in operation.attributes.items()
            if name not in named and (name not in defaults or value != defaults[name])
        }  # fmt: skip

    def read(self, reader: OperationReader, draft: Draft) -> None:
        if not self._assembly:
            raise reader.only_generic(self.name)
        for element in self._elements:
            element.read(reader, draft)

    def write(self, writer: OperationWriter, operation: Operation) -> None:
        if not self._assembly or (operation.regions and not self._has_regions):
            raise Unfit
        values = Values(operation, self._single)
        for element in self._elements:
            element.write(writer, operation, values)
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
        """The name of an argument of a region that has none. A format with two names has the first for the inputs, and
        the second for the others; a format with one name has it for all."""
        if len(self._argument_names) == 2:
            sizes = operation.attributes.get("operandSegmentSizes")
            inputs = sizes.values[0] if isinstance(sizes, DenseArray) and sizes.values else 0
            return self._argument_names[number >= inputs]
        return self._argument_names[-1] if self._argument_names else ""
