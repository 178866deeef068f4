"""`hloom.experimental.hijax`: operations on values of a library's own types, with names of jax.experimental.hijax.

A `HiPrimitive` defines itself in terms of arrays (`to_lojax`), and hloom runs that definition: applied to arrays it
becomes a primitive of `hloom.extend` with that meaning and with the derivative that it states. Values of a library's
own types (`register_hitype`) are containers of arrays within transformations (`tracer/own_values.py`); those that can
change (`MutableHiType`) are not traced.
"""

from collections import namedtuple as _namedtuple
from dataclasses import dataclass as _dataclass
from functools import partial as _partial
from typing import Any as _Any

from .. import tree as _tree
from ..autodiff.custom import custom_jvp as _custom_jvp
from ..autodiff.custom import custom_vjp as _custom_vjp
from ..autodiff.custom_batching import custom_vmap as _custom_vmap
from ..autodiff.own_operations import linear_pullback as _linear_pullback
from ..autodiff.own_operations import operation_on_own_values as _operation_on_own_values
from ..autodiff.own_operations import primitive_on_own_values as _primitive_on_own_values
from ..autodiff.own_values import register_mapped as _register_mapped
from ..autodiff.own_values import register_spec as _register_spec
from ..autodiff.tangents import Zero
from ..autodiff.tangents import instantiate as instantiate_zeros
from ..core import AbstractValue, ShapedArray
from ..extend.effects import EffectTypeSet as _EffectTypeSet
from ..extend.primitive import Primitive as _Primitive
from ..extend.protocol import AxisData as _AxisData
from ..hlo.errors import UnsupportedError as _UnsupportedError
from ..hlo.support.tracebacks import boundaries as _boundaries
from ..interpreters.derivatives import is_undefined_primal
from ..interpreters.derivatives import primitive_jvps as _jvps
from ..interpreters.derivatives import primitive_transposes as _transposes
from ..interpreters.lowering import lower_fun as _lower_fun
from ..interpreters.lowering import register_lowering as _register_lowering
from ..namespaces import publish as _publish
from ..numpy.array_manipulation import moveaxis as _moveaxis
from ..tracer.arguments import typeof as _typeof
from ..tracer.core import EVAL as _EVAL
from ..tracer.core import current_trace as _current_trace
from ..tracer.own_values import all_raised as _all_raised
from ..tracer.own_values import is_own as _is_own
from ..tracer.own_values import register as _register
from ..tracer.references.refs import AbstractRef
from ..tracer.references.refs import freeze as _freeze
from ..tracer.references.refs import new_ref as _new_ref

__all__ = [
    "AbstractRef",
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "GradAccum",
    "HiPrim",
    "HiPrimitive",
    "HiPspec",
    "HiType",
    "MappingSpec",
    "MutableHiType",
    "NullAccum",
    "RefAccum",
    "ShapedArray",
    "VJPHiPrimitive",
    "ValAccum",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "instantiate_zeros",
    "is_undefined_primal",
    "jvp_from_lin",
    "linearize_from_jvp",
    "register_hitype",
    "vjp_from_jvp",
    "vjp_from_lin",
]

aval_method = _namedtuple("aval_method", ["fun"])
"""In a class of types: a method that values of the type have."""
aval_property = _namedtuple("aval_property", ["fget"])
"""In a class of types: a property that values of the type have."""


control_flow_allowed_effects = _EffectTypeSet()
"""Effects that a library allows in loops and branches. None is refused here."""


def _missing(method: _Any) -> _Any:
    """Mark a method that a subclass defines if its types take part in what needs it."""
    method.is_missing = True
    return method


class HiType:
    """The base of a library's own types: `register_hitype` says which values have them.

    A subclass defines `lo_ty`, `lower_val` and `raise_val`, so that programs can hold its values; `to_tangent_aval`, so
    that they are differentiated; `dec_rank` and `inc_rank` for `vmap`, and `leading_axis_spec`, too, for `scan`. Types
    are equal and hashed by their fields.

    >>> import dataclasses
    >>> from hloom.experimental.hijax import HiType, ShapedArray, register_hitype
    >>> @dataclasses.dataclass(frozen=True)
    ... class Percent:
    ...     number: hloom.Array
    >>> @dataclasses.dataclass(frozen=True)
    ... class PercentType(HiType):
    ...     def lo_ty(self):
    ...         return [ShapedArray((), jnp.float32)]
    ...     def lower_val(self, value):
    ...         return [value.number]
    ...     def raise_val(self, number):
    ...         return Percent(number)
    >>> register_hitype(Percent, lambda value: PercentType())
    >>> hloom.jit(lambda x: x)(Percent(jnp.float32(3)))
    Percent(number=Array(3., dtype=float32))
    """

    __slots__ = ()
    is_high = True
    has_qdd = False
    """Whether the values can change."""

    @_missing
    def lo_ty(self) -> _Any:
        """The types of the arrays of a value, a list."""
        raise NotImplementedError(f"{type(self).__name__} does not define lo_ty")

    @_missing
    def lower_val(self, hi_val: _Any) -> _Any:
        """The arrays of a value, a list."""
        raise NotImplementedError(f"{type(self).__name__} does not define lower_val")

    @_missing
    def raise_val(self, *lo_vals: _Any) -> _Any:
        """The value with these arrays."""
        raise NotImplementedError(f"{type(self).__name__} does not define raise_val")

    @_missing
    def to_tangent_aval(self) -> _Any:
        """The type of a tangent: a `ShapedArray` of floats, or an own type with arrays that are."""
        raise NotImplementedError(f"{type(self).__name__} does not define to_tangent_aval")

    def to_ct_aval(self) -> _Any:
        """The type of a cotangent: that of a tangent."""
        return self.to_tangent_aval()

    @_missing
    def dec_rank(self, size: _Any, spec: _Any) -> _Any:
        """The type of an element of a batch of this type."""
        raise NotImplementedError(f"{type(self).__name__} does not define dec_rank")

    @_missing
    def inc_rank(self, size: _Any, spec: _Any) -> _Any:
        """The type of a batch of values of this type."""
        raise NotImplementedError(f"{type(self).__name__} does not define inc_rank")

    @_missing
    def leading_axis_spec(self) -> _Any:
        """The spec of `dec_rank` and `inc_rank` for the first axis."""
        raise NotImplementedError(f"{type(self).__name__} does not define leading_axis_spec")

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """As messages write it."""
        return repr(self)


class HiPspec:
    """The base of specs of `shard_map` for values of a library's own types, which it does not take yet."""


class MappingSpec:
    """The base of the entries of `vmap`'s `in_axes` and `out_axes` for values of a library's own types."""

    def __init_subclass__(cls, **rest: _Any) -> None:
        super().__init_subclass__(**rest)
        _register_spec(cls)


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
    _register(val_cls, typeof_fn)
    _register_mapped(val_cls)


def _refuse_within_transformations(name: str) -> None:
    """UnsupportedError within a transformation, for an operation on a value of an own type."""
    if _current_trace() is not _EVAL:
        raise _UnsupportedError(
            f"{name} is about a value of a type of its library: hloom carries it out outside of jit, grad and vmap "
            "only\n  Pass the arrays of the value into the transformed function, and make the value there of arrays."
        )


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
        if self._has_jvp():
            _jvps[self._primitive] = self.jvp
        if type(self).transpose is not HiPrimitive.transpose:
            _transposes[self._primitive] = self.transpose

    def bind(self, *operands: _Any, **params: _Any) -> _Any:
        """The operation on arrays, or outside of transformations on values of own types.

        Raises:
          UnsupportedError: an operand can change, and is within a transformation.
        """
        types = list(map(_typeof, operands))
        found, _ = self.abstract_eval(*types, **params)
        results = list(found) if self.multiple_results else [found]
        if not any(isinstance(ty, HiType | AvalQDD) for ty in (*types, *results)):
            return self._primitive.bind(*operands, **params)
        if _current_trace() is _EVAL:
            return getattr(self, "impl", self.to_lojax)(*_all_raised(operands), **params)
        if any(isinstance(ty, MutableHiType | AvalQDD) for ty in (*types, *results)):
            _refuse_within_transformations(self.name)
        return _primitive_on_own_values(self, operands, results, params)

    def _has_jvp(self) -> bool:
        return type(self).jvp is not HiPrimitive.jvp

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


class GradAccum:
    """Takes the cotangents of one leaf of the operands, of the type `aval`."""

    def __init__(self, aval: _Any) -> None:
        self.aval = aval

    def accum(self, x: _Any) -> None:
        """Add a cotangent. A subclass says how."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it adds: accum")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"


class NullAccum(GradAccum):
    """Drops the cotangents of a leaf that is not differentiated."""

    def accum(self, x: _Any) -> None:
        """Drop it."""


class ValAccum(GradAccum):
    """Adds the cotangents."""

    def __init__(self, aval: _Any, val: _Any = None) -> None:
        super().__init__(aval)
        self.val = Zero(aval) if val is None else val

    def accum(self, x: _Any) -> None:
        """Add a cotangent; None is zero."""
        if x is not None and not isinstance(x, Zero):
            self.val = x if isinstance(self.val, Zero) else self._sum(self.val, x)

    def _sum(self, x: _Any, y: _Any) -> _Any:
        return self.aval.to_ct_aval().vspace_add(x, y) if _is_own(x) else x + y

    def freeze(self) -> _Any:
        """The sum; `Zero` if there was none."""
        return self.val


class RefAccum(GradAccum):
    """Adds the cotangents to a reference, `ref`, which is made for the first one if there is none."""

    def __init__(self, aval: _Any, ref: _Any = None) -> None:
        super().__init__(aval)
        self.ref = ref

    def accum(self, x: _Any) -> None:
        """Add a cotangent; None is zero."""
        if x is None or isinstance(x, Zero):
            return
        if self.ref is None:
            self.ref = _new_ref(x)
        else:
            self.ref[...] += x

    def freeze(self) -> _Any:
        """The sum; `Zero` if there was none. The reference cannot be used any more."""
        return Zero(self.aval) if self.ref is None else _freeze(self.ref)


class VJPHiPrimitive:
    """An operation of a library on arrays, an object for each use. A subclass sets in `__init__` `in_avals` (a tuple of
    trees of types), `out_aval` (a tree of types) and `params` (a dictionary), and then calls this one's.

    `expand(*args)` is its definition. It has the derivative of `expand`, unless the subclass defines another:

    * reverse mode: `vjp_fwd(nzs_in, *args)` returns (result, residuals), and `vjp_bwd_retval(residuals, cotangent)` the
      cotangents of all arguments, or `vjp_bwd(residuals, cotangent, *accumulators)` adds them with `accum`;
    * forward mode: `jvp(primals, tangents)` returns (result, its tangent);
    * or in two steps: `lin(nzs_in, *primals)` returns (result, residuals), and `linearized(residuals, *tangents)` the
      tangent.

    Reverse mode uses the rules of forward mode if there are no others. `batch(axis_data, args, dims)` returns (results,
    their batch dimensions) for a batch of the arguments, along the dimensions `dims`, or None; without it an operation
    is batched as `expand` is. An operation on values of a library's own types (`register_hitype`) is batched so, too.

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
        values = _tree.leaves(found, lambda x: x is None or _is_own(x))
        for accumulator, value in zip(_tree.leaves(arg_accums), values, strict=True):
            accumulator.accum(value)

    def vjp_bwd_retval(self, res: _Any, outgrad: _Any, /) -> _Any:
        """The cotangents of the arguments, a tuple. A subclass may say it."""
        raise NotImplementedError(
            f"for grad support, subclass {type(self)} must implement `vjp_bwd` or `vjp_bwd_retval`"
        )

    def jvp(self, primals: _Any, tangents: _Any) -> _Any:
        """(result, its tangent). A subclass may say it."""
        raise NotImplementedError(f"for jvp support, subclass {type(self)} must implement `jvp`")

    def lin(self, nzs_in: _Any, *primals: _Any) -> _Any:
        """(result, residuals). A subclass may say it."""
        raise NotImplementedError(f"for linearize support, subclass {type(self)} must implement `lin` and `linearized`")

    def linearized(self, residuals: _Any, *tangents: _Any) -> _Any:
        """The tangent of the result, linear in the tangents. A subclass may say it."""
        raise NotImplementedError(f"for linearize support, subclass {type(self)} must implement `lin` and `linearized`")

    def batch(self, axis_data: _Any, args: _Any, dims: _Any) -> _Any:
        """(results of a batch, the dimension of the batch in each). A subclass may say it."""
        raise NotImplementedError(f"for vmap support, subclass {type(self)} must implement `batch`")

    def __call__(self, *args: _Any) -> _Any:
        if _tree.structure(args, _is_own) != self.in_tree:
            given = _tree.structure(args, _is_own)
            raise ValueError(f"{self!r} takes arguments of the structure {self.in_tree}, not {given}")
        types = *self.in_avals_flat, *self.out_avals_flat
        if any(isinstance(a, MutableHiType) for a in types):
            _refuse_within_transformations(type(self).__name__)
            return self.expand(*args)
        if any(isinstance(a, HiType) for a in types):
            outside = _current_trace() is _EVAL
            return self.expand(*_all_raised(args)) if outside else _operation_on_own_values(self, args)
        return self._function(*args)

    @property
    def _function(self) -> _Any:
        """`expand` with the derivative that the subclass says."""
        kind, base = type(self), VJPHiPrimitive
        forwards = self._forward_rule()

        def run(*args: _Any) -> _Any:
            return self.expand(*args)

        def forward(*args: _Any) -> _Any:
            return self.vjp_fwd(self._all_move(), *args)

        def backward(residuals: _Any, cotangent: _Any) -> _Any:
            return tuple(_tree.unflatten(self.in_tree, self._pulled_back(residuals, cotangent)))

        run.__name__ = run.__qualname__ = kind.__name__
        if kind.batch is not base.batch:
            run = _custom_vmap(run)
            run.def_vmap(self._batched)
        if self._has_reverse_rule():
            function = _custom_vjp(run)
            function.defvjp(forward, backward)
            function.forwards = forwards
            return function
        if forwards is not None:
            moving = _custom_jvp(run)
            moving.defjvp(forwards)
            return moving
        return run

    def _forward_rule(self) -> _Any:
        """The rule for forward mode; None if the subclass has none."""
        kind, base = type(self), VJPHiPrimitive
        if kind.jvp is not base.jvp:
            return self.jvp
        return _partial(jvp_from_lin, self) if kind.lin is not base.lin else None

    def _has_reverse_rule(self) -> bool:
        return type(self).vjp_fwd is not VJPHiPrimitive.vjp_fwd

    def _pulled_back(self, residuals: _Any, cotangent: _Any) -> list[_Any]:
        """The cotangents of the leaves of the arguments; None for zero."""
        accumulators = [ValAccum(a) for a in self.in_avals_flat]
        self.vjp_bwd(residuals, cotangent, *_tree.unflatten(self.in_tree, accumulators))
        return [None if isinstance(a.val, Zero) else a.val for a in accumulators]

    def _batched(self, size: int, in_batched: _Any, *args: _Any) -> _Any:
        """`batch` as a rule of `custom_vmap`: batches are along dimension 0."""
        dims = _tree.map(lambda is_batch: 0 if is_batch else None, tuple(in_batched))
        out, out_dims = self.batch(_AxisData(None, size), args, dims)
        leaves = _tree.leaves(out)
        every = [out_dims] * len(leaves) if out_dims is None or isinstance(out_dims, int) else None
        every = _tree.leaves(out_dims, _is_none) if every is None else every
        moved = [x if d is None else _moveaxis(x, d, 0) for x, d in zip(leaves, every, strict=True)]
        return self.out_tree.unflatten(moved), self.out_tree.unflatten([d is not None for d in every])

    def _all_move(self) -> _Any:
        """The arguments that are differentiated: all."""
        return _tree.unflatten(self.in_tree, [True] * len(self.in_avals_flat))

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


HiPrim = VJPHiPrimitive
"""Its name since JAX 0.12."""


# --- rules from other rules, for the class body of a `VJPHiPrimitive`


def jvp_from_lin(self: VJPHiPrimitive, primals: _Any, tangents: _Any) -> _Any:
    """The rule `jvp` of a class that has `lin` and `linearized`.

    >>> from hloom.experimental.hijax import VJPHiPrimitive, jvp_from_lin
    >>> class Operation(VJPHiPrimitive):
    ...     jvp = jvp_from_lin
    """
    result, residuals = self.lin(self._all_move(), *primals)
    return result, self.linearized(residuals, *tangents)


def _keeps_arguments(self: VJPHiPrimitive, nzs_in: _Any, *primals: _Any) -> _Any:
    return self(*primals), primals


def _moved_by_jvp(self: VJPHiPrimitive, primals: _Any, *tangents: _Any) -> _Any:
    return self.jvp(primals, tangents)[1]


def _by_lin(self: VJPHiPrimitive, nzs_in: _Any, *primals: _Any) -> _Any:
    return self.lin(nzs_in, *primals)


def _transposed_jvp(self: VJPHiPrimitive, primals: _Any, cotangent: _Any) -> _Any:
    return _transposed(self, lambda *tangents: self.jvp(primals, tangents)[1], cotangent)


def _transposed_linearized(self: VJPHiPrimitive, residuals: _Any, cotangent: _Any) -> _Any:
    return _transposed(self, lambda *tangents: self.linearized(residuals, *tangents), cotangent)


def _transposed(self: VJPHiPrimitive, linear: _Any, cotangent: _Any) -> _Any:
    return _linear_pullback(linear, self.in_tree, self.in_avals_flat, cotangent)


linearize_from_jvp = _keeps_arguments, _moved_by_jvp
"""``lin, linearized = linearize_from_jvp``, in a class that has `jvp`. The residuals are the arguments."""
vjp_from_jvp = _keeps_arguments, _transposed_jvp
"""``vjp_fwd, vjp_bwd_retval = vjp_from_jvp``, in a class that has `jvp`. The residuals are the arguments."""
vjp_from_lin = _by_lin, _transposed_linearized
"""``vjp_fwd, vjp_bwd_retval = vjp_from_lin``, in a class that has `lin` and `linearized`."""


_publish(__name__)
