"""Effects: the actions of a primitive besides computing its results, as objects of classes that users define.

    class Logged(Effect):
        __eq__ = lambda self, other: isinstance(other, Logged)
        __hash__ = lambda self: hash(Logged)

    lowerable_effects.add_type(Logged)
    ordered_effects.add_type(Logged)

The abstract evaluation of a primitive (`Primitive.def_effectful_abstract_eval`) says which effects a use has. A program
that runs here keeps all effects in its own order. A file of an exported function names the classes of its effects, and
passes a token for each ordered one from use to use. Source: jax/_src/effects.py, "Sequencing side-effects in JAX".
"""

from __future__ import annotations

from collections.abc import Iterable


class Effect:
    """Something that an equation does besides computing its results. A library's own are of classes below this one.

    >>> f = lambda x: hloom.debug.print("x = {}", x)
    >>> [isinstance(effect, hloom.extend.core.Effect) for effect in hloom.make_jaxpr(f)(1.0).effects]
    [True]
    """


class EffectTypeSet:
    """A set of classes of effects, which contains the objects of these classes."""

    def __init__(self) -> None:
        self._effect_types: dict[type, None] = {}

    def add_type(self, effect_type: type) -> None:
        """Add a class, below `Effect` or any other."""
        self._effect_types[effect_type] = None

    def contains(self, effect: object) -> bool:
        """Whether an effect is of one of the classes."""
        return isinstance(effect, tuple(self._effect_types))

    def filter_in(self, effects: Iterable[object]) -> list[object]:
        """The effects that are of one of the classes."""
        return [e for e in effects if self.contains(e)]

    def filter_not_in(self, effects: Iterable[object]) -> list[object]:
        """The effects that are of none of the classes."""
        return [e for e in effects if not self.contains(e)]

    def types(self) -> tuple[type, ...]:
        """The classes, in the order in which they were added."""
        return tuple(self._effect_types)

    def __repr__(self) -> str:
        return f"EffectTypeSet({{{', '.join(map(str, self._effect_types))}}})"


lowerable_effects: EffectTypeSet = EffectTypeSet()
"""The effects that a compiled program may have."""
ordered_effects: EffectTypeSet = EffectTypeSet()
"""The effects whose uses happen in the order of the program."""


class FfiEffect(Effect):
    """The effect of `ffi_call(..., has_side_effect=True)`. All of these are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FfiEffect)

    def __hash__(self) -> int:
        return hash(FfiEffect)

    def __str__(self) -> str:
        return "FFI"

    __repr__ = __str__


lowerable_effects.add_type(FfiEffect)
FFI = FfiEffect()
