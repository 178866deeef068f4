"""The tables of rules: a dictionary that hands each new rule to its primitive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..extend.primitive import Primitive
from ..extend.protocol import Definition
from ..hlo.errors import UnsupportedError

Rule = Callable[..., Any]


class Rules(dict[Any, Rule]):
    """Rules by primitive. UnsupportedError for a rule of an operation of the library."""

    def __init__(self, what: str, install: Callable[[Definition, Rule], None]) -> None:
        super().__init__()
        self._what, self._install = what, install

    def __setitem__(self, primitive: Any, rule: Rule) -> None:
        self._install(definition_of(primitive, self._what), rule)
        super().__setitem__(primitive, rule)

    def __missing__(self, primitive: Any) -> Rule:
        raise KeyError(f"no {self._what} was set for the primitive {primitive}; those of hloom's own are not here")


def definition_of(primitive: Any, what: str) -> Definition:
    """The declarations about a user's primitive in JAX's way."""
    if isinstance(primitive, Primitive):
        return primitive.as_in_jax()
    raise UnsupportedError(f"{primitive} is an operation of the library: its {what} cannot be replaced")
