"""`checkpoint_policies`: which values of a checkpointed function are kept for the backward pass.

A policy is a function policy(primitive, *types of operands, **parameters) -> bool, or one of `Saveable`, `Recompute`
and `Offloadable`. It is called for each operation of the function and each further operation that the derivative needs;
where it answers True, the result may be kept. `operations.py` describes HLO instructions for it: the names are those of
JAX's primitives.

The policies here compare by value, so that `save_only_these_names("a")`, called each time, is the same policy.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ..hlo.instruction import HloInstruction
from ..hlo.support.records import dataclass
from ..hlo.support.shared_value import SharedValue
from ..tracer.source import function_line
from .operations import NAME, operation_of

Policy = Callable[..., Any]


class _Answer(SharedValue):
    """An answer of a policy beside True and False."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


Saveable: _Answer = _Answer("Saveable")
Recompute: _Answer = _Answer("Recompute")


@dataclass(frozen=True)
class Offloadable:
    """Keep the value, in the memory `dst`. All memory here is host memory, so this is `Saveable`.

    >>> policy = lambda primitive, *types, **parameters: Offloadable(src="device", dst="pinned_host")
    >>> hloom.grad(hloom.checkpoint(lambda x: x**3, policy=policy))(2.0)
    Array(12., dtype=float32, weak_type=True)
    """

    src: str
    dst: str


def may_keep(policy: Policy, instruction: HloInstruction) -> bool:
    """Whether `policy` lets the result of an instruction be kept; TypeError for an answer that says neither."""
    operation = operation_of(instruction)
    answer = policy(operation.primitive, *operation.avals, **operation.params)
    if answer is True or answer is Saveable or isinstance(answer, Offloadable):
        return True
    if answer is False or answer is Recompute:
        return False
    raise TypeError(
        "a checkpoint policy returns a bool, or Recompute, Saveable or Offloadable(src, dst) of hloom.ad_checkpoint, "
        f"but {function_line(policy)} returned {answer!r} of type {type(answer).__name__} for the operation "
        f"{operation.primitive.name}"
    )


# --- the policies that users name


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Keep every value, as without checkpoint."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Keep the arguments alone, as without a policy."""
    return False


@dataclass(frozen=True)
class _Dots(SharedValue):
    """Keep the results of matrix products (and convolutions), perhaps only of those without batch dimensions."""

    answer: Any
    only_without_batch: bool

    def __call__(self, prim: Any, *_: Any, **params: Any) -> Any:
        if prim.name == "conv_general_dilated":
            return not self.only_without_batch and self.answer
        if prim.name != "dot_general":
            return False
        _, batch = params["dimension_numbers"]
        return False if self.only_without_batch and any(batch) else self.answer


@dataclass(frozen=True)
class _Names(SharedValue):
    """Keep values by the name that `checkpoint_name` gave them."""

    names: frozenset[str]
    listed: Any
    """The answer for a value with one of the names."""
    others: Any
    """For one with another name."""
    unnamed: Any = False

    def __call__(self, prim: Any, *_: Any, **params: Any) -> Any:
        if prim.name != NAME.name:
            return self.unnamed
        return self.listed if params["name"] in self.names else self.others


@dataclass(frozen=True)
class _Both(SharedValue):
    first: Policy
    second: Policy

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> Any:
        found = self.first(prim, *avals, **params)
        return self.second(prim, *avals, **params) if found is False or found is Recompute else found


@dataclass(frozen=True)
class _SavedOrOffloaded(SharedValue):
    saved: frozenset[str]
    offloaded: frozenset[str]
    where: Offloadable

    def __call__(self, prim: Any, *_: Any, **params: Any) -> Any:
        if prim.name != NAME.name:
            return Recompute
        if params["name"] in self.saved:
            return Saveable
        return self.where if params["name"] in self.offloaded else Recompute


dots_saveable: _Dots = _Dots(True, only_without_batch=False)
dots_with_no_batch_dims_saveable: _Dots = _Dots(True, only_without_batch=True)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """As `dots_with_no_batch_dims_saveable`: there is one memory."""
    return _Dots(Offloadable(offload_src, offload_dst), only_without_batch=True)


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Keep every value, except values that `checkpoint_name` gave one of these names."""
    return _Names(frozenset(names_not_to_save), listed=False, others=True, unnamed=True)


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Keep the values that `checkpoint_name` named, except these names."""
    return _Names(frozenset(names_not_to_save), listed=False, others=True)


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Keep the values that `checkpoint_name` gave one of these names."""
    return _Names(frozenset(names_which_can_be_saved), listed=True, others=False)


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Keep every value that one of two policies keeps."""
    return _Both(policy_1, policy_2)


def save_and_offload_only_these_names(
    *, names_which_can_be_saved: Any, names_which_can_be_offloaded: Any, offload_src: str, offload_dst: str
) -> Policy:
    """Keep the values with these names. ValueError if a name is in both lists."""
    saved, offloaded = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if saved & offloaded:
        raise ValueError(f"names that are both saved and offloaded: {sorted(saved & offloaded)}")
    return _SavedOrOffloaded(saved, offloaded, Offloadable(offload_src, offload_dst))


checkpoint_policies: SimpleNamespace = SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=dots_saveable,
    checkpoint_dots=dots_saveable,
    dots_with_no_batch_dims_saveable=dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_anything_except_these_names=save_anything_except_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=save_from_both_policies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
)
