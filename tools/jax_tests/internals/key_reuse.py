"""The private module of `jax.experimental.key_reuse`: signatures say what the library's analysis finds
(`tracer/checks/key_uses.py`), which checks assertions as it reaches them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from hloom.tracer.arrays.overlay import overlaid
from hloom.tracer.checks import key_uses

import hloom
from hloom import dtypes
from hloom.extend.core import Primitive


class _Side:
    """Keys of an operand or a result: all keys, or the keys in a mask."""

    def __init__(self, idx: int, mask: Any = True) -> None:
        known = np.array(mask)
        known.flags.writeable = False
        same = not known.ndim or known.all() or not known.any()
        self.__dict__.update(idx=idx, mask=bool(known.any()) if same else known)

    def __setattr__(self, name: str, value: Any) -> None:
        raise ValueError(f"{type(self).__name__} is immutable")

    def _key(self) -> tuple[Any, ...]:
        return type(self).__name__, self.idx, np.shape(self.mask), tuple(np.ravel(self.mask).tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Side) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        mask = "" if self.mask is True else f", {self.mask}"
        return f"{type(self).__name__}({self.idx}{mask})"


class Sink(_Side):
    """Keys of an operand are used up."""


class Source(_Side):
    """A result has new keys."""


class Forward(NamedTuple):
    """A result holds the keys of an operand."""

    in_idx: int
    out_idx: int

    def __repr__(self) -> str:
        return f"Forward({self.in_idx}, {self.out_idx})"


class KeyReuseSignature:
    """How a function uses keys."""

    def __init__(self, *parts: Any) -> None:
        self._parts = frozenset(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyReuseSignature) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        order = ("Sink", "Source", "Forward")
        parts = sorted(self._parts, key=lambda p: (order.index(type(p).__name__), repr(p)))
        return f"KeyReuseSignature({', '.join(map(repr, parts))})"


_FORWARD, _NEW, _SINK = Forward(0, 0), Source(0), Sink(0)
_OF_JAX = {
    "consume": (_SINK, _FORWARD), "random_clone": (_NEW,), "random_bits": (_SINK,), "random_seed": (_NEW,),
    "random_split": (_SINK, _NEW), "random_wrap": (_NEW,), "random_gamma": (_SINK,),
    "dynamic_update_slice": (Sink(1), _FORWARD),
    **dict.fromkeys(
        ("broadcast_in_dim", "copy", "convert_element_type", "reshape", "squeeze", "dynamic_slice"), (_FORWARD,)
    ),
}  # fmt: skip
"""JAX's signatures of its primitives, by their names."""


class _Signatures:
    def __getitem__(self, primitive: Any) -> KeyReuseSignature:
        name = getattr(primitive, "name", None) or primitive.__name__.rpartition(".")[2].removesuffix("_p")
        return KeyReuseSignature(*_OF_JAX[name])


def _is_key(aval: Any) -> bool:
    return dtypes.issubdtype(aval.dtype, dtypes.prng_key)


def _of_uses(uses: key_uses.Uses, takes: Iterable[Any], returns: Iterable[Any]) -> KeyReuseSignature:
    """The signature of a function with arguments and results of these types."""
    inputs, outputs = list(takes), list(returns)

    def keys(mask: Any) -> Any:
        return mask.any(-1) if mask.ndim else mask

    sinks = [Sink(k, keys(s.mask)) for k, s in uses.sinks.items() if _is_key(inputs[k]) and s.mask.any()]
    forwards = [Forward(f.operand, n) for n, f in uses.forwards.items() if _is_key(outputs[n])]
    known = {f.out_idx for f in forwards} | set(uses.consumed)
    new = [Source(n) for n, aval in enumerate(outputs) if _is_key(aval) and n not in known]
    return KeyReuseSignature(*sinks, *forwards, *new)


def _function_type_signature(fun: Callable[..., Any], *args: Any) -> KeyReuseSignature:
    from hloom.tracer.checks.key_reuse import uses_of

    with hloom.debug_key_reuse(True):
        lowered = hloom.jit(lambda *args: fun(*args)).trace(*args)
        uses = uses_of(lowered.lower().module.entry)
    return _of_uses(uses, map(hloom.typeof, hloom.tree.leaves(args)), hloom.tree.leaves(lowered.out_avals))


class _Asserted(key_uses.Uses):
    """An operation that uses nothing, where keys must be used up, or not."""

    def __init__(self, expected: Any) -> None:
        super().__init__({0: key_uses.Sink(key_uses.NONE)}, {0: key_uses.Forward(0)})
        object.__setattr__(self, "expected", np.asarray(expected))


def _assert_consumed(key: Any, value: Any = True) -> None:
    _watch()
    words = hloom.random.key_data(key) if _is_key(hloom.typeof(key)) else key
    key_uses.bind_use("assert_consumed_value", _Asserted(value), lambda x: x, words)


def _assert_unconsumed(key: Any) -> None:
    _assert_consumed(key, False)


def _consume(key: Any) -> Any:
    """A copy of a key; both are then used up."""
    uses = key_uses.Uses({0: key_uses.Sink()}, {0: key_uses.Forward(0)})
    words = key_uses.bind_use("consume", uses, lambda x: x, hloom.random.key_data(key))
    return overlaid(words, hloom.typeof(key))


def _watch() -> None:
    """Look at assertions where the analysis comes to them."""
    from hloom.tracer.checks import key_reuse

    applied = key_reuse._applied
    if getattr(applied, "looks", False):
        return

    def looking(i: Any, name: str, uses: Any, operands: list[Any]) -> Any:
        if isinstance(uses, _Asserted):
            consumed = operands[0].consumed()
            consumed = consumed.any(-1) if consumed.ndim else consumed
            assert np.all(consumed == uses.expected), f"used up: {consumed}, and not {uses.expected}"
        return applied(i, name, uses, operands)

    looking.looks = True  # type: ignore[attr-defined]
    key_reuse._applied = looking


def _check(f: Callable[..., Any], /, *args: Any) -> None:
    """KeyReuseError if f uses a key twice."""
    with hloom.debug_key_reuse(True):
        hloom.jit(lambda *args: f(*args)).lower(*args)


PUBLIC: dict[tuple[str, str], Any] = {
    ("experimental.key_reuse._core", name): value
    for name, value in {
        "check_key_reuse": _check, "assert_consumed": _assert_consumed, "assert_unconsumed": _assert_unconsumed,
        "consume": _consume, "Sink": Sink, "Source": Source, "Forward": Forward,
        "KeyReuseSignature": KeyReuseSignature, "key_reuse_signatures": _Signatures(),
        "function_type_signature": _function_type_signature, "consume_p": Primitive("consume"),
    }.items()
}  # fmt: skip

PRIVATE: dict[tuple[str, str], Any] = {
    ("random", "random_clone_p"): Primitive("random_clone"),
    ("random.prng", "random_wrap_p"): Primitive("random_wrap"),
}
"""Names alone, for the table of signatures."""
