"""The declaration of a field of an attribute class: its form in text, and its relation to dimensions.

    @dataclass(frozen=True, slots=True)
    class BroadcastAttributes(Attributes):
        dimensions: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(per=Of.OPERAND_0, names=Of.RESULT))]

says that the text is `dimensions={0,2}`, with one entry for each dimension of the operand, and that an entry is a
dimension of the result. The annotation is read when it is first needed: it costs nothing at import. These use it:

* the reader and the writer of HLO text (`text/attributes.py`),
* the layout passes, which renumber dimensions (`passes/layout/order_rules.py`, `passes/layout/renumber.py`),
* batching, which adds a dimension in front of all others (`autodiff/rules/declared.py`): numbers that `names`
  dimensions are raised by one, tuples with an entry `per` dimension get the entry `whole` in front,
* the documentation (`tools/ops_table.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from enum import Enum
from typing import Any, NamedTuple, get_type_hints

from ..instruction import Attributes, HloInstruction
from ..text.codec import Codec


class Of(Enum):
    """The array that an attribute's dimensions belong to."""

    RESULT = "the result"
    OPERAND_0 = "operand 0"
    OPERAND_1 = "operand 1"
    ARRAYS = "the arrays"
    """The first N operands, which have equal dimensions; N follows from `OpSpec.operands_per_array`."""
    AFTER_ARRAYS = "the operand after the arrays"
    """The indices of a scatter."""
    LAST = "the last operands"
    """N arrays at the end: the updates of a scatter."""


class Dims(NamedTuple):
    """The declaration of a field that relates to dimensions. With only `names` it is a number or a list of numbers;
    with only `per`, any values; with both, a map: entry d is for dimension d of `per`, and is a dimension of
    `names`."""

    names: Of | None = None
    """The numbers are dimensions of these arrays."""
    per: Of | None = None
    """There is one entry for each dimension of these arrays, in their order."""
    is_set: bool = False
    """The order of the numbers has no meaning; passes keep them sorted."""
    removed: bool = False
    """The result has the other dimensions of the arrays, in the same order, without these."""
    last: Of | None = None
    """There is one entry for each of the last dimensions of these arrays, along which the op works."""
    whole: Any = None
    """Of a field with only `per`: the entry for a dimension that the op leaves as it is; SIZE: the dimension's size."""


SIZE: Any = object()
NO_DIMENSIONS = Dims()


REQUIRED: Any = object()
"""There is no default."""


class OneByOne(NamedTuple):
    """Another text form of a tuple of computations: each has its own key. Always parsed; printed if `when` is true."""

    keys: tuple[str, ...]
    codec: Codec[Any]
    when: Callable[[HloInstruction], bool] | None = None


class Attr(NamedTuple):
    """A field's form in text, `key=value`, and its relation to dimensions.

    A field with a default may be missing in the text, and is not printed if it has that value. Fields that share a key
    are the columns of one list of tuples. A field without a codec is not printed among the attributes: it is in the
    parentheses, or it is an attribute object with fields that are printed in its position, or it is a Python object
    that text cannot hold.
    """

    codec: Codec[Any] | None = None
    key: str = ""
    """By default the field's name."""
    dims: Dims = NO_DIMENSIONS
    absent: Any = REQUIRED
    """The value if the text does not have the key and the field has no default."""
    always: bool = False
    """Printed even if it is the default."""
    after: str = ""
    """The field after which this one is printed, if not the one before it."""
    when: Callable[[HloInstruction], bool] | None = None
    """A test of the instructions that print the field; None: all."""
    one_by_one: OneByOne | None = None
    also: tuple[str, Codec[Any]] | None = None
    """Another key that says the same, as other versions of XLA print it, and its codec. Always parsed, never printed;
    only one of the two keys may be given."""


class Declared(NamedTuple):
    """A field with its declaration."""

    name: str
    attr: Attr
    type: Any
    default: Any
    """REQUIRED: there must be a value."""

    @property
    def key(self) -> str:
        return self.attr.key or self.name


_DECLARED: dict[type[Attributes], tuple[Declared, ...]] = {}


def declared(kind: type[Attributes]) -> tuple[Declared, ...]:
    """The fields of an attribute class, in order, with their declarations."""
    found = _DECLARED.get(kind)
    if found is None:
        hints = get_type_hints(kind, include_extras=True) if fields(kind) else {}
        found = _DECLARED[kind] = tuple(_declared(kind, f.name, hints[f.name], f.default) for f in fields(kind))
    return found


def _declared(kind: type[Attributes], name: str, hint: Any, default: Any) -> Declared:
    attrs = [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Attr)]
    assert len(attrs) == 1, f"{kind.__name__}.{name} must be Annotated[type, Attr(...)]"
    (attr,) = attrs
    if default is MISSING:
        default = attr.absent
    else:
        assert attr.absent is REQUIRED, f"{kind.__name__}.{name} has two defaults"
    return Declared(name, attr, hint.__origin__, default)
