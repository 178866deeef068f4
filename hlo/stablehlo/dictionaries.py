"""Dictionaries of MLIR attributes as the text in which HLO keeps them: configurations of custom calls, and the
parameters of composites. `hlo/text/mlir_dictionary.py` reads and writes the pairs; here are their values."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import HloError
from ..mlir.attribute_reader import read_attribute
from ..mlir.attribute_writer import AttributeWriter
from ..mlir.tree import Attribute, Opaque
from ..text.mlir_dictionary import Bare, is_bare, read_dictionary, write_dictionary
from .records import RECORDS

Pairs = tuple[tuple[str, str], ...]

_WRITER = AttributeWriter(RECORDS)


def pairs_of(attributes: Mapping[str, Attribute]) -> Pairs:
    """The keys and texts of a dictionary; a string without its quotes."""
    return tuple(
        (key, value if isinstance(value, str) else Bare(_WRITER.text(value))) for key, value in attributes.items()
    )


def dictionary_text(attributes: Mapping[str, Attribute]) -> str:
    """`{length = 10 : i64, name = "a"}`"""
    return write_dictionary(pairs_of(attributes))


def attributes_in(pairs: Pairs) -> dict[str, Attribute]:
    """The attributes of pairs that `pairs_of` or HLO text made."""
    return {key: _attribute(value) if is_bare(value) else value for key, value in pairs}


def attributes_of_text(text: str) -> dict[str, Attribute]:
    """The attributes of the text of a dictionary. ValueError if it is malformed."""
    return attributes_in(read_dictionary(text))


def _attribute(text: str) -> Attribute:
    """The attribute that is written as `text`; one that is no MLIR is kept as it is."""
    try:
        return read_attribute(text, RECORDS)
    except HloError:
        return Opaque("builtin", text)
