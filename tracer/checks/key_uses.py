"""Which keys an operation uses up, and which keys its results are: for `debug_key_reuse`.

In a traced program a key is an array of words like any other. So while that setting is on, an operation that uses keys
is recorded as a call of a primitive made here. Its meaning is the operation on words, and its parameters are a `Uses`.
Everything else follows from the program (`key_reuse.py`). While it is off there are no such calls.

Names and semantics follow jax.experimental.key_reuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.ops.control_flow import CallAttributes
from ...hlo.support.records import dataclass
from ..arrays.overlay import storages
from ..core import Call, Primitive, Value, bind_call, call_of, run_meaning

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
"""Which words of an array. Without dimensions: all or none of them."""
ALL: Mask = np.array(True)
NONE: Mask = np.array(False)


def masked(mask: Mask) -> Mask:
    """The mask in its one form: without dimensions if it is the same everywhere."""
    if mask.all() and mask.size:
        return ALL
    return mask if mask.any() else NONE


@dataclass(frozen=True, slots=True)
class Sink:
    """Words of an operand are used up."""

    mask: Mask = field(default_factory=lambda: ALL)
    line: str = ""
    """Where that is, in the user's program."""


@dataclass(frozen=True, slots=True)
class Forward:
    """A result holds keys of an operand: they are used up together."""

    operand: int
    is_whole: bool = True
    """The result is the operand. Otherwise it is made of some of its elements, and using one counts for all."""


@dataclass(frozen=True, slots=True)
class Uses:
    """The effect of an operation on keys. Operands and results are named by position. A result that is neither in
    `forwards` nor in `consumed` is new."""

    sinks: Mapping[int, Sink] = field(default_factory=dict)
    forwards: Mapping[int, Forward] = field(default_factory=dict)
    consumed: Mapping[int, Mask] = field(default_factory=dict)
    """Results that are used up from the beginning."""

    def of_batch(self, size: int, batched: Sequence[bool]) -> Uses:
        """The uses of the operation on a batch of `size`, along a first dimension of the operands that `batched`
        names."""
        sinks = {}
        for k, sink in self.sinks.items():
            mask = sink.mask
            if batched[k] and mask.ndim:
                mask = masked(np.broadcast_to(mask, (size, *mask.shape)))
            sinks[k] = Sink(mask, sink.line)
        forwards = {n: Forward(f.operand, f.is_whole and batched[f.operand]) for n, f in self.forwards.items()}
        return Uses(sinks, forwards, self.consumed)


Rule = TypeVar("Rule", bound=Callable[..., Any])
_primitives: dict[str, Primitive] = {}
_batch: Callable[..., Any] | None = None


def batches_are_made_by(rule: Rule) -> Rule:
    """Set the rule of vmap of all primitives that are made here; a decorator."""
    global _batch
    _batch = rule
    for primitive in _primitives.values():
        primitive.batch = rule
    return rule


def primitive_of_keys(name: str) -> Primitive:
    """The primitive for uses of keys by an operation, which JAX calls `name`."""
    found = _primitives.get(name)
    if found is None:
        made = Primitive(name, evaluate=run_meaning, batch=_batch, key_uses=lambda call: call.params)
        found = _primitives.setdefault(name, made)
    return found


def bind_use(name: str, uses: Uses, run: Callable[..., Value], *operands: Value) -> Value:
    """`run(*words)`, an operation on the words of keys, as one that has these `uses`."""
    call = Call(primitive_of_keys(name), lambda values: [run(*values)], uses, name)
    return bind_call(call, storages(operands))[0]


_HAS_SINKS = "_has_sinks"
"""The attribute in which a computation keeps whether it uses keys up."""


def uses_keys_up(instruction: HloInstruction) -> bool:
    """Whether it is a use of keys, or calls a computation with one: it is recorded even if nothing uses its result."""
    attributes = instruction.attributes
    if isinstance(attributes, CallAttributes):
        params = call_of(attributes).params
        if isinstance(params, Uses):
            return bool(params.sinks)
    return any(map(_has_sinks, instruction.called_computations()))


def _has_sinks(computation: HloComputation) -> bool:
    kept = computation.__dict__
    found: bool | None = kept.get(_HAS_SINKS)
    if found is None:
        found = kept[_HAS_SINKS] = any(map(uses_keys_up, computation.callers))
    return found
