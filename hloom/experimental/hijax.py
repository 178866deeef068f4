"""`hloom.experimental.hijax`: operations on values of a library's own types, with names of jax.experimental.hijax.

A `HiPrimitive` says what it is in arrays (`to_lojax`), and that is how it runs here: applied to arrays it becomes a
primitive of `hloom.extend` with that meaning and with the derivative that it states. Applied to a value of a library's
own type (`register_hitype`) it runs at once, outside of transformations. Such values are not traced: jit, grad and vmap
refuse them as arguments.
"""

from __future__ import annotations

from collections import namedtuple as _namedtuple
from dataclasses import dataclass as _dataclass
from typing import Any as _Any

from ..autodiff.tangents import Zero
from ..autodiff.tangents import instantiate as instantiate_zeros
from ..core import AbstractValue, ShapedArray
from ..extend.primitive import Primitive as _Primitive
from ..hlo.errors import UnsupportedError as _UnsupportedError
from ..interpreters.derivatives import is_undefined_primal
from ..interpreters.derivatives import primitive_jvps as _jvps
from ..interpreters.derivatives import primitive_transposes as _transposes
from ..interpreters.lowering import lower_fun as _lower_fun
from ..interpreters.lowering import register_lowering as _register_lowering
from ..namespaces import publish as _publish
from ..tracer.arguments import OWN_TYPES as _OWN_TYPES
from ..tracer.arguments import typeof as _typeof
from ..tracer.core import EVAL as _EVAL
from ..tracer.core import current_trace as _current_trace
from ..tracer.refs import AbstractRef
from ..tracer.source import user_line as _user_line

__all__ = [
    "AbstractRef",
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiType",
    "MutableHiType",
    "ShapedArray",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]

aval_method = _namedtuple("aval_method", ["fun"])
"""In a class of types: a method that values of the type have."""
aval_property = _namedtuple("aval_property", ["fget"])
"""In a class of types: a property that values of the type have."""


class _EffectTypes:
    """A set of classes of effects."""

    def __init__(self) -> None:
        self._types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        """Add a class of effects."""
        self._types.add(effect_type)

    def contains(self, effect: object) -> bool:
        """Whether an effect is of one of the classes."""
        return isinstance(effect, tuple(self._types))


control_flow_allowed_effects = _EffectTypes()
"""Effects that a library allows in loops and branches. None is refused here."""


class HiType:
    """The base of a library's own types: `register_hitype` says which values have them."""

    __slots__ = ()
    is_high = True
    has_qdd = False
    """Whether the values can change."""


class MutableHiType(HiType):
    """The base of types whose values can change."""

    __slots__ = ()
    has_qdd = True


@_dataclass(frozen=True)
class AvalQDD:
    """A type, and what a value of the type holds at one time."""

    aval: _Any
    qdd: _Any


@_dataclass(frozen=True)
class AvalMutableQDD:
    """A type, and a record, which is updated, of what a value of the type holds."""

    aval: _Any
    mutable_qdd: _Any


def register_hitype(val_cls: type, typeof_fn: _Any) -> None:
    """Say that `typeof` of values of a class is `typeof_fn(value)`, a `HiType`."""
    _OWN_TYPES[val_cls] = typeof_fn


class HiPrimitive:
    """An operation of a library: a subclass says in `to_lojax(*operands, **params)` what it computes.

    Its methods `jvp(primals, tangents, **params)` and `transpose(cotangent, *operands, **params)` are its derivative if
    the subclass has them. Without them its derivative is that of `to_lojax`. `impl(*operands, **params)` is used
    outside of transformations for values of a library's own types.
    """

    multiple_results = False

    def __init__(self, name: str) -> None:
        self.name = name
        self._primitive = _Primitive(name)
        self._primitive.multiple_results = self.multiple_results
        self._primitive.def_impl(self.to_lojax)
        self._primitive.def_abstract_eval(lambda *types, **params: self.abstract_eval(*types, **params)[0])
        _register_lowering(self._primitive, _lower_fun(self.to_lojax, multiple_results=self.multiple_results))
        if type(self).jvp is not HiPrimitive.jvp:
            _jvps[self._primitive] = self.jvp
        if type(self).transpose is not HiPrimitive.transpose:
            _transposes[self._primitive] = self.transpose

    def bind(self, *operands: _Any, **params: _Any) -> _Any:
        """The operation on arrays, or outside of transformations on values of own types.

        Raises:
          UnsupportedError: an operand is of an own type within a transformation.
        """
        own = [x for x in operands if type(x) in _OWN_TYPES]
        if not own and not self._gives_own_type(operands, params):
            return self._primitive.bind(*operands, **params)
        if _current_trace() is not _EVAL:
            raise _UnsupportedError(
                f"{self.name} is about a value of a type of its library: hloom carries it out outside of jit, grad and "
                f"vmap only\n  at {_user_line()}\n  Pass the arrays of the value into the transformed function, and "
                "make the value there of arrays."
            )
        run = getattr(self, "impl", self.to_lojax)
        return run(*operands, **params)

    def _gives_own_type(self, operands: tuple[_Any, ...], params: dict[str, _Any]) -> bool:
        """Whether a result is of a library's own type."""
        found, _ = self.abstract_eval(*map(_typeof, operands), **params)
        types = found if self.multiple_results else [found]
        return any(isinstance(ty, HiType | AvalQDD) for ty in types)

    def abstract_eval(self, *types: _Any, **params: _Any) -> _Any:
        """(type or types of the results, effects) for types of operands. A subclass says it."""
        raise NotImplementedError(f"{type(self).__name__} does not say the types of its results: abstract_eval")

    def to_lojax(self, *operands: _Any, **params: _Any) -> _Any:
        """What it computes. A subclass says it."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it computes: to_lojax")

    def jvp(self, primals: _Any, tangents: _Any, **params: _Any) -> _Any:
        """(results, their tangents). A subclass may say it."""
        raise NotImplementedError(f"{type(self).__name__} does not say its derivative: jvp")

    def transpose(self, *operands: _Any, **params: _Any) -> _Any:
        """Cotangents of the operands. A subclass may say it."""
        raise NotImplementedError(f"{type(self).__name__} does not say its transpose: transpose")


_publish(__name__)
