"""`hloom.experimental.hijax`: operations on values of a library's own types, with names of jax.experimental.hijax.

A `HiPrimitive` defines itself in terms of arrays (`to_lojax`), and hloom runs that definition: applied to arrays it
becomes a primitive of `hloom.extend` with that meaning and with the derivative that it states. Applied to a value of a
library's own type (`register_hitype`) it runs at once, outside of transformations. Such values are not traced: jit,
grad and vmap refuse them as arguments.
"""

import threading as _threading
from collections import namedtuple as _namedtuple
from collections.abc import Iterator as _Iterator
from contextlib import contextmanager as _contextmanager
from dataclasses import dataclass as _dataclass
from typing import Any as _Any

from .. import tree as _tree
from ..autodiff.custom import custom_jvp as _custom_jvp
from ..autodiff.custom import custom_vjp as _custom_vjp
from ..autodiff.tangents import Zero
from ..autodiff.tangents import instantiate as instantiate_zeros
from ..core import AbstractValue, ShapedArray
from ..extend.primitive import Primitive as _Primitive
from ..hlo.errors import UnsupportedError as _UnsupportedError
from ..hlo.support.tracebacks import boundaries as _boundaries
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
from ..tracer.references.refs import AbstractRef

__all__ = [
    "AbstractRef",
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiType",
    "MutableHiType",
    "ShapedArray",
    "VJPHiPrimitive",
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
    """The base of types with values that can change."""

    __slots__ = ()
    has_qdd = True


@_dataclass(frozen=True)
class AvalQDD:
    """A type, and the contents of a value of the type at one time."""

    aval: _Any
    qdd: _Any


@_dataclass(frozen=True)
class AvalMutableQDD:
    """A type, and a record, which is updated, of the contents of a value of the type."""

    aval: _Any
    mutable_qdd: _Any


def register_hitype(val_cls: type, typeof_fn: _Any) -> None:
    """Say that `typeof` of values of a class is `typeof_fn(value)`, a `HiType`."""
    _OWN_TYPES[val_cls] = typeof_fn


class HiPrimitive:
    """An operation of a library: a subclass defines it in `to_lojax(*operands, **params)`.

    Its methods `jvp(primals, tangents, **params)` and `transpose(cotangent, *operands, **params)` are its derivative if
    the subclass has them. Without them its derivative is the derivative of `to_lojax`. `impl(*operands, **params)` is
    used outside of transformations for values of a library's own types.
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
                f"{self.name} is about a value of a type of its library: hloom carries it out outside of jit, grad "
                "and vmap only\n  Pass the arrays of the value into the transformed function, and make the value "
                "there of arrays."
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
        """The definition in terms of arrays. A subclass says it."""
        raise NotImplementedError(f"{type(self).__name__} does not define to_lojax")

    def jvp(self, primals: _Any, tangents: _Any, **params: _Any) -> _Any:
        """(results, their tangents). A subclass may say it."""
        raise NotImplementedError(f"{type(self).__name__} does not say its derivative: jvp")

    def transpose(self, *operands: _Any, **params: _Any) -> _Any:
        """Cotangents of the operands. A subclass may say it."""
        raise NotImplementedError(f"{type(self).__name__} does not say its transpose: transpose")


_boundaries(HiPrimitive, "bind")


class _Accumulator:
    """Takes the cotangents of one leaf of the operands."""

    def __init__(self) -> None:
        self.total: _Any = None

    def accum(self, value: _Any) -> None:
        """Add a cotangent."""
        if value is not None and not isinstance(value, Zero):
            self.total = value if self.total is None else self.total + value


class VJPHiPrimitive:
    """An operation of a library on arrays, an object for each use. A subclass sets in `__init__` `in_avals` (a tuple of
    trees of types), `out_aval` (a tree of types) and `params` (a dictionary), and then calls this one's.

    `expand(*args)` is its definition. It has the derivative of `expand`, unless the subclass defines another:
    `vjp_fwd(nzs_in, *args)` returns (result, residuals), and `vjp_bwd_retval(residuals, cotangent)` the cotangents of
    all arguments, or `vjp_bwd(residuals, cotangent, *accumulators)` adds them with `accum`. Without these,
    `jvp(primals, tangents)` returns (result, its tangent). It is batched as `expand` is.

    >>> class Double(VJPHiPrimitive):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (hloom.typeof(x),), hloom.typeof(x), {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return 2 * x
    ...     def vjp_fwd(self, nzs_in, x):
    ...         return self(x), None
    ...     def vjp_bwd_retval(self, residuals, g):
    ...         return (2 * g,)
    >>> hloom.grad(lambda x: Double(x)(x))(3.0)
    Array(2., dtype=float32, weak_type=True)
    """

    in_avals: tuple[_Any, ...]
    out_aval: _Any
    params: dict[str, _Any]
    effects: frozenset[_Any] = frozenset()

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        kind, base = type(self), VJPHiPrimitive
        if kind.vjp_bwd is not base.vjp_bwd and kind.vjp_bwd_retval is not base.vjp_bwd_retval:
            raise AttributeError(f"subclass {kind} should not override both `vjp_bwd` and `vjp_bwd_retval`")
        self.in_avals_flat, self.in_tree = _tree.flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = _tree.flatten(self.out_aval)
        self.__dict__.update(self.params)
        self.check(*self.in_avals)

    def check(self, *arg_tys: _Any) -> None:
        """Raise an error for types that it is not for. A subclass may say so."""

    def expand(self, *args: _Any) -> _Any:
        """The definition. A subclass says it."""
        raise NotImplementedError(f"subclass {type(self)} must implement `expand`")

    def vjp_fwd(self, nzs_in: _Any, /, *args: _Any) -> _Any:
        """(result, residuals). A subclass may say it."""
        raise NotImplementedError(f"for grad support, subclass {type(self)} must implement `vjp_fwd`")

    def vjp_bwd(self, res: _Any, outgrad: _Any, /, *arg_accums: _Any) -> None:
        """Add the cotangents of the arguments to the accumulators."""
        found = self.vjp_bwd_retval(res, outgrad)
        for accumulator, value in zip(_tree.leaves(arg_accums), _tree.leaves(found, _is_none), strict=True):
            accumulator.accum(value)

    def vjp_bwd_retval(self, res: _Any, outgrad: _Any, /) -> _Any:
        """The cotangents of the arguments, a tuple. A subclass may say it."""
        raise NotImplementedError(
            f"for grad support, subclass {type(self)} must implement `vjp_bwd` or `vjp_bwd_retval`"
        )

    def jvp(self, primals: _Any, tangents: _Any) -> _Any:
        """(result, its tangent). A subclass may say it."""
        raise NotImplementedError(f"for jvp support, subclass {type(self)} must implement `jvp`")

    def __call__(self, *args: _Any) -> _Any:
        if _tree.structure(args) != self.in_tree:
            raise ValueError(f"{self!r} takes arguments of the structure {self.in_tree}, not {_tree.structure(args)}")
        return self._function(*args)

    @property
    def _function(self) -> _Any:
        """`expand` with the derivative that the subclass says."""
        kind, base = type(self), VJPHiPrimitive
        if _expanding.of is self:  # a rule that calls the operation itself
            return self.expand

        def run(*args: _Any) -> _Any:
            return self.expand(*args)

        def forward(*args: _Any) -> _Any:
            with _expanding.within(self):
                return self.vjp_fwd(_tree.unflatten(self.in_tree, [True] * len(self.in_avals_flat)), *args)

        def backward(residuals: _Any, cotangent: _Any) -> _Any:
            accumulators = [_Accumulator() for _ in self.in_avals_flat]
            self.vjp_bwd(residuals, cotangent, *_tree.unflatten(self.in_tree, accumulators))
            return tuple(_tree.unflatten(self.in_tree, [a.total for a in accumulators]))

        if kind.vjp_fwd is not base.vjp_fwd:
            function = _custom_vjp(run)
            function.defvjp(forward, backward)
            return function
        if kind.jvp is not base.jvp:
            moving = _custom_jvp(run)

            def jvp(primals: _Any, tangents: _Any) -> _Any:
                with _expanding.within(self):
                    return self.jvp(primals, tangents)

            moving.defjvp(jvp)
            return moving
        return run

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(self.params.items()), self.effects))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, VJPHiPrimitive)
            and type(self) is type(other)
            and (self.params, self.effects) == (other.params, other.effects)
        )


def _is_none(x: object) -> bool:
    return x is None


_boundaries(VJPHiPrimitive, "__call__")


class _Expanding(_threading.local):
    """The operation that is running its own rule in this thread."""

    of: _Any = None

    @_contextmanager
    def within(self, primitive: VJPHiPrimitive) -> _Iterator[None]:
        before, self.of = self.of, primitive
        try:
            yield
        finally:
            self.of = before


_expanding = _Expanding()


_publish(__name__)
