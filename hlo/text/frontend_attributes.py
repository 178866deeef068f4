"""How frontend attributes are written, and the composite that a call keeps in them.

`common_attributes.py` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ops.control_flow import Composite
from .escape import escape
from .mlir_dictionary import write_dictionary
from .scanner import pattern

_KEY = r"[A-Za-z_][A-Za-z0-9_.\-]*"
_DICTIONARY = r'\{(?:[^{}"\\]|"(?:[^"\\]|\\.)*+")*+\}'


def composite_frontend_attributes(composite: Composite) -> list[tuple[str, str]]:
    """The frontend attributes of a composite call in XLA, besides `is_composite=true`."""
    return [
        ("composite.attributes", write_dictionary(composite.parameters)),
        ("composite.name", composite.name),
        ("composite.version", str(composite.version)),
    ]


def frontend_attributes_text(attributes: Iterable[tuple[str, str]]) -> str:
    """`frontend_attributes={a="b",c={d = 1}}`: as in XLA, a value that is a dictionary has no quotes."""
    return "frontend_attributes={" + ",".join(f"{_key(key)}={_value(value)}" for key, value in attributes) + "}"


def _key(key: str) -> str:
    """XLA has no form for a key that is not an identifier; our parser reads it in quotes."""
    return key if pattern(_KEY).fullmatch(key) else f'"{escape(key)}"'


def _value(value: str) -> str:
    return value if value.isprintable() and pattern(_DICTIONARY).fullmatch(value) else f'"{escape(value)}"'
