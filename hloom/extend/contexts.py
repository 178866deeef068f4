"""The first argument of a lowering, and its parts, with the names of jax.interpreters.mlir.

A lowering of JAX's form is ``rule(context, *values, **params)``. Here the values are traced arrays. Tokens have no
content: effects happen in the order of the program, and files of exported functions get their tokens later
(`hloom/export/tokens.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from ..hlo.support.records import dataclass
from ..tracer.aval import ShapedArray
from ..tracer.control_flow.platforms import lowering_platforms
from ..tracer.settings.config import config
from ..tracer.settings.context import current_context
from ..tracer.token import Token


class TokenSet:
    """A token for each of some effects.

    >>> hloom.interpreters.mlir.TokenSet.create(["an effect"]).effects()
    ['an effect']
    """

    def __init__(self, tokens: Mapping[Any, Any] | None = None) -> None:
        self._tokens = dict(tokens or {})

    @classmethod
    def create(cls, effects: Sequence[Any]) -> TokenSet:
        """New tokens for these effects."""
        return cls({effect: Token() for effect in effects})

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, effect: Any) -> Any:
        """The token of an effect; KeyError if there is none."""
        return self._tokens[effect]

    def effects(self) -> list[Any]:
        """The effects, in order."""
        return list(self._tokens)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Pairs of an effect and its token."""
        return iter(self._tokens.items())


@dataclass(frozen=True, slots=True)
class LoweringParameters:
    """The purpose of the program around a lowering."""

    for_export: bool
    """It is exported."""
    export_ignore_forward_compatibility: bool
    hoist_constants_as_args: bool = False
    """Arrays that a lowering makes are constants of the program."""


def _parameters() -> LoweringParameters:
    for_export = bool(current_context().lowering_platforms)
    ignores: bool = config.jax_export_ignore_forward_compatibility
    return LoweringParameters(for_export, for_export and ignores)


@dataclass(frozen=True, slots=True)
class ModuleContext:
    """The program around a lowering."""

    kept: list[Any]
    """Objects that live as long as the primitive."""
    platforms: tuple[str, ...] = field(default_factory=lowering_platforms)
    lowering_parameters: LoweringParameters = field(default_factory=_parameters)

    def add_keepalive(self, kept: Any) -> None:
        """Keep an object that the lowered operation needs; programs keep the Python functions that they call."""
        if kept is not None:
            self.kept.append(kept)


@dataclass(frozen=True, slots=True)
class LoweringRuleContext:
    """The first argument of a lowering (`mlir.LoweringRuleContext`): the types of its operands and results."""

    module_context: ModuleContext
    primitive: Any
    avals_in: Sequence[ShapedArray]
    avals_out: Sequence[ShapedArray] | None
    """None if the primitive has no abstract evaluation."""
    tokens_in: TokenSet = field(default_factory=TokenSet)
    """A token for each ordered effect of the primitive."""

    def set_tokens_out(self, tokens: TokenSet) -> None:
        """Say which tokens come after the effects. ValueError for other effects than those of `tokens_in`."""
        if unknown := [e for e in tokens.effects() if e not in self.tokens_in.effects()]:
            raise ValueError(f"{self.primitive} has no ordered effects {unknown}")

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """The same context with other fields."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class LoweredFunction:
    """A lowering that is a function of arrays: the result of `mlir.lower_fun`."""

    fun: Callable[..., Any]
    multiple_results: bool

    def __call__(self, context: LoweringRuleContext, *operands: Any, **params: Any) -> list[Any]:
        """The results, as a list. Other lowerings call it, too."""
        found = self.fun(*operands, **params)
        return list(found) if self.multiple_results else [found]
