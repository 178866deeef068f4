"""Codecs of plain attribute values: numbers, words, strings, names of computations, and lists of these.

The reader and the writer of a codec are next to each other. Which attribute has which codec is declared with its field,
in `ops/<family>.py`. Source: XLA's HloParserImpl (ParseAttributeHelper and the functions that it calls).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeVar

from ..errors import HloParseError
from ..instruction import HloComputation
from ..shape import Shape, read_shape
from .codec import Codec, ComputationName, Writing, plain
from .escape import escape
from .scanner import Scanner, pattern

E = TypeVar("E", bound=Enum)


# Numbers


def integers_text(values: Sequence[int]) -> str:
    """`{0,2,1}`"""
    return "{" + ",".join(map(str, values)) + "}"


def read_integers(scanner: Scanner) -> tuple[int, ...]:
    """`{0,2,1}`"""
    scanner.expect("{", "to open a list of numbers")
    values = []
    if not scanner.peek("}"):
        values.append(scanner.integer("a number"))
        while scanner.accept(","):
            values.append(scanner.integer("a number"))
    scanner.expect("}", "or ',' after a number")
    return tuple(values)


def _read_one_dimension(scanner: Scanner) -> int:
    """`{1}`"""
    position = scanner.skip()
    dimensions = read_integers(scanner)
    if len(dimensions) != 1:
        raise scanner.error(f"expected one dimension, found {len(dimensions)}", position)
    return dimensions[0]


def read_integer_lists(scanner: Scanner) -> tuple[tuple[int, ...], ...]:
    """`{{0,1},{2,3}}`"""
    scanner.expect("{", "to open a list of lists of numbers")
    return tuple([read_integers(scanner) for _ in scanner.each("}", "a list")])


def _read_pairs(scanner: Scanner) -> tuple[tuple[int, int], ...]:
    """`{{0,1},{1,0}}`"""
    position = scanner.skip()
    pairs = []
    for pair in read_integer_lists(scanner):
        if len(pair) != 2:
            raise scanner.error("expected pairs {source,target}", position)
        pairs.append((pair[0], pair[1]))
    return tuple(pairs)


def read_integer(scanner: Scanner) -> int:
    return scanner.integer("a number")


_NUMBER = r"\s*(-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|-?inf|-?nan)(?![A-Za-z0-9_])"


def _read_float(scanner: Scanner) -> float:
    """A decimal number, perhaps with an exponent."""
    match = pattern(_NUMBER).match(scanner.text, scanner.position)
    if match is None:
        raise scanner.expected("a decimal number")
    scanner.position = match.end()
    return float(match.group(1))


def _float_text(value: float) -> str:
    """With nine digits, enough for f32 numbers, if these give the same number; otherwise with all digits needed."""
    text = f"{value:.9g}"
    return text if float(text) == value or value != value else repr(float(value))


INTEGER = plain(read_integer, str)
INTEGER_LIST = plain(read_integers, integers_text)
ONE_DIMENSION = plain(_read_one_dimension, lambda d: f"{{{d}}}")
LISTS_OF_INTEGERS = plain(read_integer_lists, lambda lists: f"{{{','.join(map(integers_text, lists))}}}")
PAIRS = plain(_read_pairs, lambda pairs: f"{{{','.join(map(integers_text, pairs))}}}")
FLOAT = plain(_read_float, _float_text)


# Words and strings


def read_bool(scanner: Scanner) -> bool:
    if scanner.accept_word("true"):
        return True
    if scanner.accept_word("false"):
        return False
    raise scanner.expected("true or false")


def _read_precision(scanner: Scanner) -> tuple[str, str]:
    """`{default,highest}`"""
    scanner.expect("{", "to open the precisions")
    lhs = _read_one_precision(scanner)
    scanner.expect(",", "between the two operands' precisions")
    rhs = _read_one_precision(scanner)
    scanner.expect("}", "after the two operands' precisions")
    return lhs, rhs


_PRECISIONS = ("default", "high", "highest")


def _read_one_precision(scanner: Scanner) -> str:
    """In letters of any case, as XLA reads them."""
    if scanner.peek_word().lower() not in _PRECISIONS:
        raise scanner.expected(f"one of {', '.join(_PRECISIONS)}")
    return scanner.word("a precision").lower()


def _read_any_text(scanner: Scanner) -> str:
    """The text of a value in braces or of a bare word; the content of a string in quotes."""
    if scanner.peek('"'):
        return scanner.string("a value")
    start = scanner.skip()
    scanner.skip_value()
    return scanner.text[start : scanner.position]


def _dictionary_or_quoted(text: str) -> str:
    """`text` itself if it starts with a brace and that brace closes at its end, else in quotes. Source: XLA's
    LexesAsJsonDict."""
    scanner = Scanner(text)
    try:
        is_dictionary = text.startswith("{") and text.isprintable() and scanner.braced("") == text
    except HloParseError:
        is_dictionary = False
    return text if is_dictionary else _quoted(text)


def _quoted(text: str) -> str:
    return f'"{escape(text)}"'


def _backend_config_text(config: str, writing: Writing) -> str:
    """The backend_config of a typed call is a dictionary and is written without quotes."""
    is_typed = writing.instruction.attributes.api_version.value == "API_VERSION_TYPED_FFI"
    return _dictionary_or_quoted(config or "{}") if is_typed else _quoted(config)


def enumeration(kind: type[E]) -> Codec[E]:
    """The members of `kind`, by their values."""

    def read(scanner: Scanner) -> E:
        members = {member.value: member for member in kind}
        word = scanner.peek_word()
        if word not in members:
            raise scanner.expected(f"one of {', '.join(members)}")
        scanner.word("a value")
        return members[word]

    return plain(read, lambda member: str(member.value))


BOOLEAN = plain(read_bool, lambda value: "true" if value else "false")
MARK: Codec[object] = plain(read_bool, lambda value: "true")
"""Marks that there is a value, which stands at another place of the text."""
WORD = plain(lambda scanner: scanner.word("a value"), str)
STRING = plain(lambda scanner: scanner.string("a string in double quotes"), _quoted)
BRACED = plain(lambda scanner: scanner.braced("a value in braces"), str)
"""Kept as text."""
PRECISION = plain(_read_precision, lambda precisions: f"{{{','.join(precisions)}}}")
BACKEND_CONFIG: Codec[str] = Codec(_read_any_text, _backend_config_text)


# Computations and shapes


def read_computation(scanner: Scanner) -> ComputationName:
    position = scanner.skip()
    return ComputationName(scanner.name("the name of a computation"), position)


def read_computations(scanner: Scanner) -> tuple[ComputationName, ...]:
    scanner.expect("{", "to open a list of computations")
    names = [read_computation(scanner)]
    while scanner.accept(","):
        names.append(read_computation(scanner))
    scanner.expect("}", "or ',' after a computation")
    return tuple(names)


def _read_shapes(scanner: Scanner) -> tuple[Shape, ...]:
    """`{f32[2]{0}, s32[]}`"""
    scanner.expect("{", "to open a list of shapes")
    return tuple([read_shape(scanner) for _ in scanner.each("}", "a shape")])


def _name(computation: HloComputation, writing: Writing) -> str:
    return f"%{writing.name(computation)}"


def _names(computations: Sequence[HloComputation], writing: Writing) -> str:
    return f"{{{', '.join(_name(c, writing) for c in computations)}}}"


COMPUTATION: Codec[HloComputation] = Codec(read_computation, _name)
COMPUTATIONS: Codec[tuple[HloComputation, ...]] = Codec(read_computations, _names)
SHAPE: Codec[Shape] = plain(read_shape, Shape.to_text)
SHAPES = plain(_read_shapes, lambda shapes: f"{{{', '.join(shape.to_text() for shape in shapes)}}}")
