"""Tokens: JAX's older programs pass them from effect to effect. Here they order nothing, since effects happen in the
order of the program."""

from __future__ import annotations

from typing import Any

from .trees import tree


class Token:
    """A value without content. As a pytree it has no leaves, and all tokens are equal.

    >>> hloom.tree.leaves(hloom.lax.create_token())
    []
    """

    __slots__ = ()

    def block_until_ready(self) -> Token:
        """The token itself: everything before it is done."""
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token)

    def __hash__(self) -> int:
        return hash(Token)

    def __repr__(self) -> str:
        return "Token()"


def _flatten(token: Token) -> tuple[tuple[()], None]:
    return (), None


def _unflatten(_: None, leaves: Any) -> Token:
    return Token()


tree.register_pytree_node(Token, _flatten, _unflatten)


class AbstractToken:
    """The type of tokens: JAX's `abstract_token` is its only object."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Tok"


abstract_token: AbstractToken = AbstractToken()
