"""What a field of an attribute class declares: how it is written and read, and what it says about dimensions.

    @dataclass(frozen=True, slots=True)
    class BroadcastAttributes(Attributes):
        dimensions: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(per=Of.OPERAND_0, names=Of.RESULT))]

says that the text is `dimensions={0,2}`, with one entry for each dimension of the operand, which is a dimension of the
result. The annotation is looked at when something asks: a class costs nothing at import. From these declarations work

* the reader and the writer of HLO text (`text/attributes.py`),
* the layout passes, which number dimensions anew (`passes/layout/order_rules.py`, `passes/layout/renumber.py`),
* the documentation (`tools/ops_table.py`).

They are general enough for whatever else adds, removes or renumbers dimensions, such as batching. In front of all
dimensions of an operand a new one: numbers that `names` its dimensions are raised by one, tuples with an entry `per`
dimension of it get one more, and `dimensions.py` tells which dimension of the result the new one is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from enum import Enum
from typing import Any, NamedTuple, get_type_hints

from ..instruction import Attributes, HloInstruction
from ..text.codec import Codec


class Of(Enum):
    """Whose dimensions an attribute speaks of."""

    RESULT = "the result"
    OPERAND_0 = "operand 0"
    OPERAND_1 = "operand 1"
    ARRAYS = "the arrays"
    """The N arrays of equal dimensions that come first; how many they are follows from `OpSpec.operands_per_array`."""
    AFTER_ARRAYS = "the operand after the arrays"
    """The indices of a scatter."""
    LAST = "the last operands"
    """N arrays at the end: the updates of a scatter."""


class Dims(NamedTuple):
    """What a field says about dimensions. With `names` alone it is a number or a list of numbers, with `per` alone any
    values, with both a map: entry d belongs to dimension d of the one, and is a dimension of the other."""

    names: Of | None = None
    """The numbers are dimensions of these arrays."""
    per: Of | None = None
    """There is one entry for each dimension of these arrays, in their order."""
    is_set: bool = False
    """Which dimensions are named counts, not in what sequence; passes keep them sorted."""
    removed: bool = False
    """The result has the other dimensions of the arrays, in their sequence, and not these."""
    last: Of | None = None
    """There is one entry for each of the last dimensions of these arrays, along which the op works."""


NO_DIMENSIONS = Dims()


REQUIRED: Any = object()
"""There is no default."""


class OneByOne(NamedTuple):
    """Another form of a tuple of computations: each under a key. It is read always, and written `when` this is true."""

    keys: tuple[str, ...]
    codec: Codec[Any]
    when: Callable[[HloInstruction], bool] | None = None


class Attr(NamedTuple):
    """A field's form in text, `key=value`, and what it says about dimensions.

    A field with a default may be missing in the text, and is not written where it has it. Fields that share a key hold
    a column each of a list of tuples. Without a codec the value is not among the attributes: it is in the
    parentheses, or is an attribute object itself, whose fields are written in this place.
    """

    codec: Codec[Any] | None = None
    key: str = ""
    """By default the field's name."""
    dims: Dims = NO_DIMENSIONS
    absent: Any = REQUIRED
    """What it means that the text has no such key, if the field has no default that says so."""
    always: bool = False
    """Written even where it is the default."""
    after: str = ""
    """The field behind which this one is written, if that is not the one before it."""
    when: Callable[[HloInstruction], bool] | None = None
    """Of which instructions the field is written."""
    one_by_one: OneByOne | None = None


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
    """The fields of an attribute class, in their own order, with what they declare."""
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
