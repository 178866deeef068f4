"""grad, value_and_grad, jvp, vjp and linearize: the transformations that users call, on pytrees of arrays.

Names, arguments and meanings are JAX's. They work on concrete values (op by op, so that Python control flow on them
works), within jit, around jit, and within each other.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, ParamSpec, TypeVar, overload

from ..hlo.ir import HloComputation
from ..hlo.support.lazy import lazy_property
from ..hlo.support.loading import load
from ..hlo.support.tracebacks import boundary
from ..tracer.arguments import NO_STATICS, check_function, has_own, leaf_names
from ..tracer.arrays.array import as_value, younger_arrays
from ..tracer.arrays.float0 import hide_float0, is_float0
from ..tracer.arrays.operators import ArrayBase
from ..tracer.aval import ShapedArray
from ..tracer.core import Trace, Value, current_trace, eval_computation
from ..tracer.execution import look_at_modules
from ..tracer.ops import is_inexact, scalar
from ..tracer.recording import is_recording
from ..tracer.references.refs import Ref, check_aliases, replace_all
from ..tracer.source import function_line
from ..tracer.trees import tree
from ..tracer.wrapping import wraps
from .custom import refuse_forward, refuse_forward_in
from .grad_checks import (
    at,
    check_scalar_output,
    checked_argnums,
    described,
    grad_inputs,
    of_chosen,
    refuse_reduce_axes,
    resolve_argnums,
)
from .gradient_refs import GradValue, placed_gradients, targets_of
from .jvp import JVPTracer, jvp_flat
from .linearize import LinearProgram, linearize_flat
from .pullbacks import Saved, given_cotangent, pull_back, saveable_flags, saved
from .rules import families as families  # says where the rules are
from .tangents import Tangent, Zero, float0, float0_zeros, instantiate

Function = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R")
Aux = TypeVar("Aux")


def _on_own_values() -> Any:
    return load(".own_values", __package__)


# --- running a function on flat lists of values


class _Flat:
    """`fun` on a flat list of values. After it ran: the tree of its results, which of their types are weak, and the
    returned aux."""

    def __init__(self, fun: Function, in_tree: Any, has_aux: bool, references: Sequence[int] = ()) -> None:
        """`references`: positions of the values that `fun` takes as references to mutable arrays."""
        self._fun = fun
        self._shown = inspect.unwrap(fun)
        self._in_tree = in_tree
        self._has_aux = has_aux
        self._references = references
        self.tree: Any = None
        self.written: list[int] = []
        """Positions of the references that it has written. Their last values follow the results."""
        self._is_weak: list[bool] = []
        self._aux: Any = None
        self._trace: Trace | None = None

    def __call__(self, values: Sequence[Value]) -> list[Value]:
        self._trace = current_trace()
        given: list[Any] = list(values)
        for k in self._references:
            given[k] = Ref(values[k], f"number {k}")
        result = self._fun(*tree.unflatten(self._in_tree, given))
        if self._has_aux:
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise TypeError(
                    "with has_aux=True the function must return a pair (result, aux), a two-element tuple, but "
                    f"{function_line(self._shown)} returned {described(result)}"
                )
            result, self._aux = result
        leaves, self.tree = tree.flatten(result)
        if any(map(is_float0, leaves)):
            leaves, self.tree = tree.flatten(hide_float0(result))
        outputs = [_output_value(leaf, self._shown) for leaf in leaves]
        if self._references:
            self.written = [k for k in self._references if given[k].current() is not values[k]]
            outputs += [given[k].current() for k in self.written]
        self._is_weak = [v.aval.weak_type for v in outputs]
        return outputs

    def typed(self, results: Sequence[Any]) -> list[Any]:
        """Results, or tangents of them, with types as weak as those that `fun` returned."""
        return [_as_weak(r, w) for r, w in zip(results, self._is_weak, strict=True)]

    def aux(self) -> Any:
        """The second result (aux) without the tangents of this transformation, but with outer ones."""
        leaves, structure = tree.flatten(self._aux)
        own = [isinstance(x, JVPTracer) and x._trace is self._trace for x in leaves]
        primals = [_as_weak(x.primal, x.aval.weak_type) if o else x for x, o in zip(leaves, own, strict=True)]
        return tree.unflatten(structure, primals)


def _as_weak(value: Any, is_weak: bool) -> Any:
    """`value` with such a type; arrays of float0 have no other."""
    return current_trace().with_weak_type(value, is_weak) if isinstance(value, ArrayBase) else value


def _output_value(leaf: Any, fun: Function) -> Value:
    try:
        value: Value = as_value(leaf)
    except TypeError:
        raise TypeError(
            f"{function_line(fun)} returned {described(leaf)}, which is not an array: functions that are "
            "differentiated return (pytrees of) arrays and numbers"
        ) from None
    return value


# --- forward mode


@overload
def jvp(
    fun: Callable[..., tuple[R, Aux]], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[True]
) -> tuple[R, R, Aux]: ...
@overload
def jvp(
    fun: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[False] = False
) -> tuple[R, R]: ...
@overload
def jvp(fun: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool) -> tuple[Any, ...]: ...
def jvp(fun: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]:
    """`fun(*primals)` and how it moves when `primals` move along `tangents`. JAX's `jvp`.

    Args:
      fun: takes and returns pytrees of arrays; with `has_aux`, returns (result, aux).
      primals: a tuple or list of arguments.
      tangents: the same trees, shapes and dtypes; `float0` zeros for integers and booleans.

    Returns:
      (result, tangent of the result), and aux if `has_aux`.

    Raises:
      TypeError, ValueError: `tangents` do not fit `primals`.

    >>> hloom.jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 0.0))
    (Array(6., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))
    """
    check_function(fun, "jvp")
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise TypeError(
            "primal and tangent arguments to hloom.jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}.{at(fun)}"
        )
    if has_own(primals, tangents):
        return _on_own_values().jvp_own(jvp, fun, primals, tangents, has_aux)  # type: ignore[no-any-return]
    leaves, structure = tree.flatten(primals)
    directions, tangent_structure = tree.flatten(tangents)
    if structure != tangent_structure:
        raise TypeError(
            "primal and tangent arguments to hloom.jvp must have the same tree structure; primals have tree structure "
            f"{structure} whereas tangents have tree structure {tangent_structure}.{at(fun)}"
        )
    values = [as_value(leaf) for leaf in leaves]
    moves = [_input_tangent(v, t, fun) for v, t in zip(values, directions, strict=True)]
    flat = _Flat(fun, structure, has_aux)
    results, tangents_out = jvp_flat(flat, values, moves)
    result = tree.unflatten(flat.tree, flat.typed(results))
    if has_own(result):  # its tangent is of another structure
        return _on_own_values().jvp_own(jvp, fun, primals, tangents, has_aux)  # type: ignore[no-any-return]
    out = (
        result,
        tree.unflatten(flat.tree, flat.typed([_output_tangent(t) for t in tangents_out])),
    )
    return (*out, flat.aux()) if has_aux else out


def _input_tangent(primal: Value, tangent: Any, fun: Function) -> Tangent:
    """The tangent that a user gave for `primal`, checked."""
    is_float0 = getattr(tangent, "dtype", None) == float0
    if is_float0:
        shape, dtype = tuple(tangent.shape), float0
    else:
        tangent = as_value(tangent)
        shape, dtype = tangent.aval.shape, tangent.aval.dtype
    wanted = primal.aval.dtype if is_inexact(primal.aval.dtype) else float0
    if dtype != wanted:
        name = "float0" if wanted == float0 else wanted.name
        raise TypeError(
            "primal and tangent arguments to hloom.jvp do not match; dtypes must be equal, or in case of int/bool "
            f"primal dtype the tangent dtype must be float0. Got primal dtype {primal.aval.dtype.name} and so expected "
            f"tangent dtype {name}, but got tangent dtype {'float0' if is_float0 else dtype.name} instead.{at(fun)}"
        )
    if shape != primal.aval.shape:
        raise ValueError(
            "jvp called with different primal and tangent shapes; got primal shape "
            f"{primal.aval.shape} and tangent shape {shape}. They must be equal.{at(fun)}"
        )
    return Zero(primal.aval) if is_float0 else tangent


def _output_tangent(tangent: Tangent) -> Any:
    if isinstance(tangent, Zero) and not is_inexact(tangent.aval.dtype):
        return float0_zeros(tangent.aval)
    return instantiate(tangent)


@overload
def linearize(
    fun: Callable[..., tuple[R, Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, LinearizedFunction[R], Aux]: ...
@overload
def linearize(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, LinearizedFunction[R]]: ...
@overload
def linearize(fun: Function, *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...
def linearize(fun: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """`fun(*primals)` and the function that pushes tangents through at this point. JAX's `linearize`.

    Returns:
      (result, f_jvp), and aux if `has_aux`. f_jvp(*tangents) computes only the part that depends on tangents.

    >>> value, push = hloom.linearize(lambda x: x**3, 2.0)
    >>> print(value, push(1.0), push(0.5))
    8.0 12.0 6.0
    """
    check_function(fun, "linearize")
    if has_own(primals):
        return _on_own_values().linearize_own(linearize, fun, primals, has_aux)  # type: ignore[no-any-return]
    leaves, structure = tree.flatten(primals)
    values = [as_value(leaf) for leaf in leaves]
    flat = _Flat(fun, structure, has_aux)
    with younger_arrays(captures=False) as block:
        results, program = linearize_flat(flat, values, [is_inexact(v.aval.dtype) for v in values])
    results = flat.typed(results)
    types = [v.aval for v in values], flat.tree, [r.aval for r in results]
    f_jvp: LinearizedFunction[Any] = LinearizedFunction(fun, program, block, structure, *types)
    out = tree.unflatten(flat.tree, results)
    if has_own(out):
        return _on_own_values().linearize_own(linearize, fun, primals, has_aux)  # type: ignore[no-any-return]
    return (out, f_jvp, flat.aux()) if has_aux else (out, f_jvp)


class _AtPoint:
    """A linear function at one point of `fun`: the structures and types of its arguments and results."""

    _rest: _Rest | None = None
    """The structure from which a jitted function or a transformation made it: all that it makes have the same."""

    def __init__(
        self, fun: Function, in_tree: Any, in_avals: Sequence[ShapedArray], out_tree: Any,
        out_avals: Sequence[ShapedArray],
    ) -> None:  # fmt: skip
        self._fun = fun
        self._in_tree, self._in_avals = in_tree, tuple(in_avals)
        self._out_tree, self._out_avals = out_tree, tuple(out_avals)


class LinearizedFunction(_AtPoint, Generic[R]):
    """The result of `linearize`: tangents of the arguments in, tangent of the result out."""

    _made_by = "linearize"

    def __init__(self, fun: Function, program: LinearProgram, block: int, *types: Any) -> None:
        super().__init__(fun, *types)
        self._moves = [o is not None for o in program.outputs]
        name = f"linear_{getattr(fun, '__name__', 'function')}"
        self.computation, self._residuals = program.computation(name, block)
        """`computation`: the linear program as HLO; it takes the tangents and the residuals."""

    @boundary
    def __call__(self, *tangents: Any) -> R:
        leaves, structure = tree.flatten(tangents)
        if structure != self._in_tree:
            raise TypeError(
                f"expected tangents of tree structure {self._in_tree}, got {structure}."
                f"{at(self._fun)}"
            )
        _refuse_custom_vjp(self.computation)
        given = []
        for aval, leaf in zip(self._in_avals, leaves, strict=True):
            if not is_inexact(aval.dtype):
                self._check_float0(leaf, aval)
                continue
            tangent = as_value(leaf)
            if (tangent.aval.shape, tangent.aval.dtype) != (aval.shape, aval.dtype):
                raise ValueError(
                    "linearized function called on tangent values inconsistent with the original primal values: got "
                    f"{tangent.aval.str_short()} for primal {aval.str_short()}.{at(self._fun)}"
                )
            given.append(tangent)
        moved = iter(eval_computation(self.computation, [*given, *self._residuals]))
        out = [
            _output_tangent(next(moved) if m else Zero(a)) for a, m in zip(self._out_avals, self._moves, strict=True)
        ]
        typed = [_as_weak(t, a.weak_type) for t, a in zip(out, self._out_avals, strict=True)]
        moved_result: R = tree.unflatten(self._out_tree, typed)
        return moved_result

    def _check_float0(self, leaf: Any, aval: ShapedArray) -> None:
        """ValueError unless `leaf` is a tangent of an integer or a boolean."""
        shape = tuple(getattr(leaf, "shape", ()))
        if getattr(leaf, "dtype", None) != float0 or shape != aval.shape:
            got = f"float0{list(shape)}" if getattr(leaf, "dtype", None) == float0 else as_value(leaf).aval.str_short()
            raise ValueError(
                f"linearized function called on tangent values inconsistent with the original primal values: got {got} "
                f"for primal {aval.str_short()}, of which tangents are float0 zeros.{at(self._fun)}"
            )


tree.register_pytree_node(
    LinearizedFunction,
    lambda f: (f._residuals, f._rest or _Rest(f)),
    lambda rest, residuals: rest.with_(_residuals=list(residuals)),
)


class _Rest:
    """The part of a function returned by linearize or vjp that is no array: its structure as a pytree."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def with_(self, **changes: Any) -> Any:
        """The function with other arrays."""
        other = copy.copy(self.function)
        other.__dict__.update(changes, _rest=self)
        return other


def _refuse_custom_vjp(computation: HloComputation) -> None:
    """TypeError if a custom_vjp function is in the linear program: its forward derivative is unknown. A program that is
    recorded may be transposed; it is refused where it is lowered."""
    if is_recording(current_trace()):
        look_at_modules(refuse_forward)
        return
    pending = [computation]
    while pending:
        found = pending.pop()
        refuse_forward_in(found)
        pending.extend(called for instruction in found.instructions for called in instruction.called_computations())


# --- reverse mode


@overload
def vjp(
    fun: Callable[..., tuple[R, Aux]],
    *primals: Any,
    has_aux: Literal[True],
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
) -> tuple[R, PullbackFunction, Aux]: ...
@overload
def vjp(
    fun: Callable[..., R],
    *primals: Any,
    has_aux: Literal[False] = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
) -> tuple[R, PullbackFunction]: ...
@overload
def vjp(
    fun: Function, *primals: Any, has_aux: bool, reduce_axes: Sequence[Any] = (), saveable_args: Any = True
) -> tuple[Any, ...]: ...
def vjp(
    fun: Function,
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
) -> tuple[Any, ...]:
    """`fun(*primals)` and the function that pulls cotangents back from this point. JAX's `vjp`.

    Args:
      saveable_args: which of the arguments f_vjp may keep: a boolean, or a tree of booleans over `primals` in which
        only the numbers of children count. Assign the others to `f_vjp.args_res` before it is called.

    Returns:
      (result, f_vjp), and aux if `has_aux`. f_vjp(cotangent of the result) is a tuple with a cotangent for each
      argument; `float0` zeros for integers and booleans.

    Raises:
      ValueError: `saveable_args` is no such tree; (f_vjp) an argument that was not kept has not been assigned.

    >>> value, pull = hloom.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> pull(1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_function(fun, "vjp")
    refuse_reduce_axes(reduce_axes, "vjp")
    if has_own(primals):
        return _on_own_values().vjp_own(vjp, fun, primals, has_aux)  # type: ignore[no-any-return]
    leaves, structure = tree.flatten(primals)
    if any(map(is_float0, leaves)):  # the primals are cotangents of another vjp
        leaves, structure = tree.flatten(hide_float0(primals))
    takes_reference = [isinstance(leaf, Ref) for leaf in leaves]
    if any(takes_reference):
        check_aliases(leaves, leaf_names(fun, primals, {}, NO_STATICS), (), "vjp")
    values = [leaf.current() if isinstance(leaf, Ref) else as_value(leaf) for leaf in leaves]
    flat = _Flat(fun, structure, has_aux, [k for k, is_reference in enumerate(takes_reference) if is_reference])
    results, program = linearize_flat(flat, values, [is_inexact(v.aval.dtype) for v in values])
    results = flat.typed(results)
    count = len(results) - len(flat.written)
    replace_all([leaves[k] for k in flat.written], results[count:])
    del results[count:]
    arguments = [None if r else v for r, v in zip(takes_reference, values, strict=True)]
    types = [v.aval for v in values], flat.tree, [r.aval for r in results]
    f_vjp = PullbackFunction(fun, program, arguments, structure, *types)
    if saveable_args is not True:
        f_vjp._exclude(saveable_args)
    f_vjp._takes_reference = takes_reference
    f_vjp._unseen = len(flat.written)
    out = tree.unflatten(flat.tree, results)
    if has_own(out):
        return _on_own_values().vjp_own(vjp, fun, primals, has_aux)  # type: ignore[no-any-return]
    return (out, f_vjp, flat.aux()) if has_aux else (out, f_vjp)


class PullbackFunction(_AtPoint):
    """The result of `vjp`: the cotangent of the result in, a tuple of the arguments' cotangents out."""

    _made_by = "vjp"

    def __init__(self, fun: Function, program: LinearProgram, arguments: Sequence[Value | None], *types: Any) -> None:
        super().__init__(fun, *types)
        self._program = program
        self._arguments = arguments
        self._targets: list[Any] | None = None
        self._takes_reference: list[bool] = []
        self._unseen = 0
        """How many results of the program, its last ones, are values that were written to references."""

    @lazy_property
    def _saved(self) -> Saved:
        return saved(self._program, self._arguments, self._in_tree, [True] * len(self._arguments))

    @lazy_property
    def args_res(self) -> list[Any]:
        """The arguments that it uses as they are, with tuples for containers: `NotNeeded()` for one that it does not
        use, `NotSaveable()` for one that must be assigned first. It may be changed and assigned to."""
        return self._saved.args_res

    @lazy_property
    def opaque_residuals(self) -> list[Any]:
        """The other values that it uses."""
        return self._saved.opaque_residuals

    def _exclude(self, saveable_args: Any) -> None:
        """Keep only those arguments that `saveable_args` allows."""
        is_saveable = saveable_flags(saveable_args, self._in_tree)
        self._saved = saved(self._program, self._arguments, self._in_tree, is_saveable)
        self.args_res = self._saved.args_res
        self._program = dataclasses.replace(self._program, residuals={}, constants={})
        self._arguments = ()

    def _whole_program(self) -> LinearProgram:
        if not self.__dict__.keys() & {"args_res", "opaque_residuals"}:  # the values are where they were recorded
            return self._program
        values = self._saved.values(self.args_res, self.opaque_residuals, self._in_tree, self._fun)
        return dataclasses.replace(self._program, residuals=values, constants={})

    @boundary
    def with_refs(self, *targets: Any) -> PullbackFunction:
        """The same function with a place for the gradient of each argument: a reference (`hloom.new_ref`), which it is
        added to; `hloom.ad.GradValue()`, the result; `hloom.ad.DontWant()`, nowhere. An argument that is a reference
        needs a reference.

        >>> import hloom
        >>> _, f_vjp = hloom.vjp(lambda x: x**2, 3.0)
        >>> total = hloom.new_ref(1.0)
        >>> f_vjp.with_refs(total)(1.0), total
        ((GradRef(),), Ref(7., dtype=float32, weak_type=True))
        """
        other = copy.copy(self)
        other._rest, other._targets = None, targets_of(targets, self._in_tree, self._takes_reference)
        return other

    def replace(self, **changes: Any) -> PullbackFunction:
        """The same function with other `args_res` or `opaque_residuals`; TypeError for other names."""
        other = copy.copy(self)
        for name, value in changes.items():
            if name not in ("args_res", "opaque_residuals"):
                raise TypeError(f"replace takes args_res and opaque_residuals, not {name}")
            setattr(other, name, value)
        return other

    @boundary
    def __call__(self, *cotangent: Any) -> tuple[Any, ...]:
        if len(cotangent) != 1:
            raise TypeError(
                f"The function that vjp returned when applied to {getattr(self._fun, '__name__', 'it')} was called "
                f"with {len(cotangent)} arguments, but it takes one argument, the cotangent of the result: where the "
                f"result is a tuple, give a tuple.{at(self._fun)}"
            )
        leaves, structure = tree.flatten(cotangent[0])
        if structure != self._out_tree:
            leaves, structure = tree.flatten(_without_float0_results(cotangent[0], self._out_tree))
        if structure != self._out_tree:
            raise ValueError(
                "unexpected tree structure of argument to vjp function: got "
                f"{structure}, but expected {self._out_tree}.{at(self._fun)}"
            )
        cotangents = [given_cotangent(leaf, a, self._fun) for leaf, a in zip(leaves, self._out_avals, strict=True)]
        if any(self._takes_reference) and self._targets is None:
            placed_gradients([], [GradValue()] * len(self._takes_reference), self._takes_reference)
        is_strong = any(ct is not None and not ct.aval.weak_type for ct in cotangents)
        given = [*cotangents, *[None] * self._unseen]
        gradients = pull_back(self._whole_program(), self._in_avals, given, is_strong)
        if self._targets is not None:
            gradients = placed_gradients(gradients, self._targets, self._takes_reference)
        pulled: tuple[Any, ...] = tree.unflatten(self._in_tree, gradients)
        return pulled


def _without_float0_results(cotangents: Any, structure: Any) -> Any:
    """The cotangents of a result of this structure, with nodes in the places where the result has float0 arrays."""
    examples = tree.leaves(tree.unflatten(structure, [0] * structure.num_leaves))
    leaves, given = tree.flatten(cotangents)
    if len(leaves) != len(examples):
        return cotangents
    pairs = zip(leaves, examples, strict=True)
    return tree.unflatten(given, [hide_float0(leaf) if is_float0(example) else leaf for leaf, example in pairs])


tree.register_pytree_node(
    PullbackFunction,
    lambda f: ((f.args_res, f.opaque_residuals), f._rest or _Rest(f)),
    lambda rest, kept: rest.with_(args_res=kept[0], opaque_residuals=kept[1]),
)


@overload
def grad(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]: ...
def grad(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Function:
    """The function that computes the gradient of `fun`, which returns a scalar. JAX's `grad`.

    Args:
      fun: its arguments named by `argnums` are pytrees of floating-point arrays; it returns one real scalar, or with
        `has_aux` a pair (scalar, aux).
      argnums: the positional arguments to differentiate with respect to; a tuple gives a tuple of gradients.
      holomorphic: `fun` is holomorphic, with complex inputs and output.
      allow_int: also accept integers and booleans; their gradient is `float0` zeros.
      reduce_axes: was removed from JAX; NotImplementedError unless it is empty.

    Returns:
      A function of the same arguments that returns the gradient; with `has_aux`, (gradient, aux).

    Raises:
      TypeError: (when called) the output is not a real scalar, or an argument has no derivative.

    >>> loss = lambda w, x: jnp.sum((w * x) ** 2)
    >>> hloom.grad(loss)(jnp.array([1.0, 2.0]), 3.0)
    Array([18., 36.], dtype=float32)
    >>> hloom.grad(loss, argnums=(0, 1))(jnp.array([1.0, 2.0]), 3.0)
    (Array([18., 36.], dtype=float32), Array(30., dtype=float32, weak_type=True))
    """
    value_and_grad_f = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes, _name="grad")

    @wraps(fun)
    @boundary
    def grad_f(*args: Any, **kwargs: Any) -> Any:
        value, gradient = value_and_grad_f(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_f


def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    *,
    _name: str = "value_and_grad",
) -> Callable[P, tuple[R, Any]]:
    """The function that computes `fun` and its gradient. As `grad`; returns (value, gradient), with `has_aux`
    ((value, aux), gradient). JAX's `value_and_grad`.

    >>> value, gradient = hloom.value_and_grad(lambda w: jnp.sum(w["a"] ** 2))({"a": jnp.array([1.0, 2.0])})
    >>> value, gradient
    (Array(5., dtype=float32), {'a': Array([2., 4.], dtype=float32)})
    """
    check_function(fun, _name)
    refuse_reduce_axes(reduce_axes, _name)
    positions = checked_argnums(argnums)
    one_argument = not isinstance(argnums, Sequence)

    @wraps(fun)
    @boundary
    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        chosen = resolve_argnums(positions, len(args), argnums, fun)
        if has_own([args[k] for k in chosen]):
            filled = functools.partial(fun, **kwargs)
            of_parts = functools.partial(value_and_grad, has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int)
            found, gradients = _on_own_values().value_and_grad_own(of_parts, filled, args, chosen)
            return found, gradients[0] if one_argument else gradients
        values, structure = grad_inputs(_name, fun, args, chosen, holomorphic, allow_int)
        flat = _Flat(of_chosen(fun, args, kwargs, chosen), structure, has_aux)
        results, program = linearize_flat(flat, values, [is_inexact(v.aval.dtype) for v in values])
        results = flat.typed(results)
        check_scalar_output(_name, results, flat.tree, fun, holomorphic)
        (result,) = results
        one = scalar(1, result.aval.dtype)
        gradient = tree.unflatten(structure, pull_back(program, [v.aval for v in values], [one]))
        if one_argument:
            (gradient,) = gradient
        value: Any = (result, flat.aux()) if has_aux else result
        return value, gradient

    return value_and_grad_f
