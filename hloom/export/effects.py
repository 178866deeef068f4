"""The effects of exported functions: how a traced program tells them, and their names in files.

A file has the texts of classes: ``<class 'jax._src.ffi.FfiEffect'>``. Reading one needs a class of that text among
`lowerable_effects`, and makes an object of it. Source: jax/_src/export/serialization.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..extend.effects import FFI, FfiEffect, lowerable_effects, ordered_effects
from ..extend.given import Given
from ..ffi.calls import ForeignCall
from ..hlo.ir import HloModule
from ..hlo.opcode import Opcode
from ..tracer.core import call_of
from .record import ExportedFunction

_NAMES: dict[type, str] = {FfiEffect: "<class 'jax._src.ffi.FfiEffect'>"}
"""The names in files of effects that are JAX's own, by the classes here."""


def effects_of(module: HloModule) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The ordered and the unordered effects of a program, each sorted by its text."""
    found = sorted({*_effects(module)}, key=str)
    return tuple(ordered_effects.filter_in(found)), tuple(ordered_effects.filter_not_in(found))


def _effects(module: HloModule) -> Iterator[Any]:
    for instruction in module.instructions():
        if instruction.opcode is Opcode.CALL:
            match call_of(instruction.attributes).params:
                case Given(effects=effects):
                    yield from effects
                case ForeignCall(has_side_effect=True):
                    yield FFI
                case ExportedFunction(ordered_effects=first, unordered_effects=others):
                    yield from (*first, *others)


def name_of(effect: Any) -> str:
    """The name of an effect in files. NotImplementedError for one that an object of its class, made without arguments,
    does not equal."""
    kind = type(effect)
    try:
        made = kind()
    except Exception as error:
        raise NotImplementedError(f"Effect {effect} must have a nullary constructor to be serializable") from error
    try:
        is_equal = made == effect and hash(made) == hash(effect)
    except Exception as error:
        raise NotImplementedError(f"Effect {effect} must be hashable to be serializable") from error
    if not is_equal:
        raise NotImplementedError(
            f"Effect {effect} must have a nullary class constructor that produces an equal effect object."
        )
    return _NAMES.get(kind, str(kind))


def effects_named(names: Sequence[str]) -> tuple[Any, ...]:
    """The effects of a file. NotImplementedError for one whose class is not among `lowerable_effects`."""
    known = {_NAMES.get(kind, str(kind)): kind for kind in lowerable_effects.types()}
    for name in names:
        if name not in known:
            raise NotImplementedError(
                f"cannot deserialize effect type {name}: add its class to "
                "hloom.interpreters.mlir.lowerable_effects with add_type"
            )
    return tuple([known[name]() for name in names])
