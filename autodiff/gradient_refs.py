"""`with_refs` of a pullback from `vjp`: where gradients go. To a reference, which adds them up; to the result; nowhere.

Names and semantics follow jax.ad and jax.vjp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..hlo.errors import UnsupportedError
from ..hlo.support.records import dataclass
from ..tracer.references.refs import Ref, addupdate
from ..tracer.trees import tree


@dataclass(frozen=True, slots=True)
class GradValue:
    """For `with_refs`: the gradient of an argument is returned."""


@dataclass(frozen=True, slots=True)
class GradRef:
    """In place of a gradient that was added to a reference."""


@dataclass(frozen=True, slots=True)
class DontWant:
    """For `with_refs`: the gradient of an argument is not wanted."""


@dataclass(frozen=True, slots=True)
class DidntWant:
    """In place of a gradient that was not wanted."""


tree.register_pytree_node(GradRef, lambda _: ((), None), lambda _, __: GradRef())
tree.register_pytree_node(DidntWant, lambda _: ((), None), lambda _, __: DidntWant())
_KINDS = (Ref, GradValue, DontWant)


def targets_of(given: Sequence[Any], in_tree: Any, takes_reference: Sequence[bool]) -> list[Any]:
    """The targets that `with_refs` was given, one for each leaf of the arguments."""
    count = len(takes_reference)
    full = tree.unflatten(in_tree, list(range(count)))
    if len(given) != len(full):
        raise ValueError(
            f"with_refs takes an entry for each argument of the differentiated function, {len(full)}, but got "
            f"{len(given)}"
        )
    try:
        found = tree.broadcast_prefix(tuple(given), full, is_leaf=lambda x: x is None or isinstance(x, _KINDS))
    except ValueError as error:
        raise ValueError(f"with_refs must be a prefix of the arguments' tree: {error}") from None
    for entry in found:
        if entry is not None and not isinstance(entry, _KINDS):
            raise ValueError(
                "with_refs takes references (hloom.new_ref), hloom.ad.GradValue() and hloom.ad.DontWant(), not "
                f"{entry!r}"
            )
    return [GradValue() if entry is None else entry for entry in found]


def placed_gradients(gradients: Sequence[Any], targets: Sequence[Any], takes_reference: Sequence[bool]) -> list[Any]:
    """The gradients where `targets` want them: the leaves of the result."""
    for target, is_reference in zip(targets, takes_reference, strict=True):
        if is_reference and isinstance(target, GradValue):
            raise ValueError(
                "the function was differentiated with respect to a reference to a mutable array, whose gradient must "
                "be accumulated into a ref: give one with the method `with_refs` of what hloom.vjp returned, or "
                "hloom.ad.DontWant()"
            )
    out: list[Any] = []
    for gradient, target in zip(gradients, targets, strict=True):
        if isinstance(target, Ref):
            if getattr(gradient, "aval", None) is None:
                raise UnsupportedError("with_refs: an argument of integers has no gradient to add")
            addupdate(target, ..., gradient)
            out.append(GradRef())
        else:
            out.append(gradient if isinstance(target, GradValue) else DidntWant())
    return out
