"""linear_transpose, linear_call, closure_convert, custom_gradient, fwd_and_bwd: functions from other functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from ..hlo.ir import HloComputation
from ..hlo.support.records import dataclass
from ..hlo.support.tracebacks import boundary
from ..tracer.arguments import LeafName, abstract_example, check_function
from ..tracer.arrays.array import as_value
from ..tracer.arrays.overlay import overlaid_all
from ..tracer.aval import HasType, ShapedArray
from ..tracer.core import Call, Primitive, Tracer, Value, bind_call, current_trace, eval_computation, run_meaning
from ..tracer.jit import jit
from ..tracer.ops import is_inexact, zeros
from ..tracer.recording import trace_to_computation
from ..tracer.source import function_line
from ..tracer.trees import tree
from ..tracer.trees.tree import Partial
from ..tracer.wrapping import wraps
from .api import vjp
from .custom import custom_vjp
from .grad_checks import at, checked_argnums, of_chosen, refuse_reduce_axes, resolve_argnums
from .tangents import Linear, Operand, Tangent, Zero, float0_zeros, instantiate
from .transpose import transpose_flat

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class TracedFunction:
    """A function of pytrees, traced on arguments of certain types: it takes values, and then `captured`."""

    in_tree: Any
    in_avals: Sequence[ShapedArray]
    computation: HloComputation
    captured: tuple[Value, ...]
    out_avals: tuple[ShapedArray, ...]
    out_tree: Any


def traced_function(fun: Function, avals: Sequence[ShapedArray], in_tree: Any, name: str) -> TracedFunction:
    """`fun` of the trees that `in_tree` describes."""
    out_tree: Any = None

    def flat(values: list[Value]) -> list[Value]:
        nonlocal out_tree
        leaves, out_tree = tree.flatten(fun(*tree.unflatten(in_tree, values)))
        return [as_value(leaf) for leaf in leaves]

    found = trace_to_computation(flat, avals, name, tracks_varying=True)
    return TracedFunction(in_tree, avals, found.computation, tuple(found.captured), found.out_avals, out_tree)


def _traced(fun: Function, examples: Sequence[Any], name: str) -> TracedFunction:
    leaves, in_tree = tree.flatten(tuple(examples))
    return traced_function(fun, [_type(leaf, fun) for leaf in leaves], in_tree, getattr(fun, "__name__", name))


def divided(values: Sequence[Any], counts: Sequence[int]) -> tuple[list[Any], ...]:
    """The first values in parts of so many each, and the others."""
    ends = tuple(accumulate((0, *counts)))
    return (*[list(values[i:j]) for i, j in pairwise(ends)], list(values[ends[-1] :]))


def _type(leaf: Any, fun: Function) -> ShapedArray:
    """The type of an example; only its shape and dtype count."""
    return abstract_example(leaf, lambda: LeafName("of an argument", function_line(fun)))


# --- transposes


def linear_transpose(fun: Function, *primals: Any, reduce_axes: Sequence[Any] = ()) -> Function:
    """The transpose of `fun`, which must be linear: a function from a cotangent of its result to a tuple of cotangents
    of its arguments. JAX's `linear_transpose`.

    Args:
      fun: a linear function of pytrees.
      primals: arguments; only their shapes and dtypes count: arrays, or `ShapeDtypeStruct`.
      reduce_axes: was removed from JAX; NotImplementedError unless it is empty.

    Raises:
      TypeError: integers become floats or the reverse; (when called) the cotangent is not like the result.
      UnsupportedError: (when called) `fun` is not linear.

    >>> transposed = hloom.linear_transpose(lambda x: jnp.array([[1.0, 2.0], [3.0, 4.0]]) @ x, jnp.ones(2))
    >>> transposed(jnp.array([1.0, 10.0]))
    (Array([31., 42.], dtype=float32),)
    """
    check_function(fun, "linear_transpose")
    refuse_reduce_axes(reduce_axes, "linear_transpose")
    traced = _traced(fun, primals, "function")
    if len({is_inexact(a.dtype) for a in (*traced.in_avals, *traced.out_avals)}) > 1:
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer -> integer functions,"
            f" but got {[a.str_short() for a in traced.in_avals]} -> {[a.str_short() for a in traced.out_avals]}."
            f"{at(fun)}"
        )

    def transposed(captured: list[Value], cotangent: Any) -> Any:
        leaves, structure = tree.flatten(cotangent)
        if structure != traced.out_tree:
            raise TypeError(
                f"cotangent tree does not match function output, expected {traced.out_tree} but got "
                f"{structure}.{at(fun)}"
            )
        values = [as_value(leaf) for leaf in leaves]
        for value, aval in zip(values, traced.out_avals, strict=True):
            if (value.aval.shape, value.aval.dtype) != (aval.shape, aval.dtype):
                raise TypeError(
                    f"cotangent type does not match function output, expected {aval.str_short()} but got "
                    f"{value.aval.str_short()}.{at(fun)}"
                )
        operands: list[Operand] = [*(Linear(a) for a in traced.in_avals), *captured]
        found = transpose_flat(traced.computation, operands, values)
        trace = current_trace()
        cts = [
            zeros(a) if ct is None else trace.with_weak_type(ct, a.weak_type) for a, ct in zip(traced.in_avals, found)
        ]
        return tree.unflatten(traced.in_tree, cts)

    return Partial(boundary(transposed), list(traced.captured))  # a pytree, which functions may take and return


@dataclass(frozen=True, slots=True)
class _LinearCall:
    """The parameters of a call of LINEAR_CALL. Its operands: residuals, the captured values of both functions, linear
    arguments.
    """

    forward: HloComputation
    """Takes residuals, linear arguments, captured values."""
    backward: HloComputation
    residuals: int
    captured: tuple[int, int]

    def split(self, operands: Sequence[Any]) -> tuple[list[Any], ...]:
        return divided(operands, (self.residuals, *self.captured))

    def bind(self, operands: Sequence[Value]) -> list[Value]:
        def run(values: list[Value]) -> list[Value]:
            residuals, ours, _, linear = self.split(values)
            return eval_computation(self.forward, [*residuals, *linear, *ours])

        traced = trace_to_computation(run, [o.aval for o in operands], "linear_call", tracks_varying=True)
        return bind_call(Call(LINEAR_CALL, traced.computation, self, "linear_call"), operands)


LINEAR_CALL = Primitive("linear_call", evaluate=run_meaning, is_linear=True)


def linear_call(fun: Function, fun_transpose: Function, residual_args: Any, linear_args: Any) -> Any:
    """``fun(residual_args, linear_args)``, linear in `linear_args`, with its transpose given:
    ``fun_transpose(residual_args, cotangent)``. JAX's `linear_call`.

    Raises:
      TypeError: `fun_transpose` does not return a pytree like `linear_args`; it is differentiated with respect to
        `residual_args`.

    >>> half = lambda x: linear_call(lambda r, x: x / r, lambda r, ct: ct / r, 2.0, x)
    >>> half(3.0), hloom.grad(half)(3.0)
    (Array(1.5, dtype=float32, weak_type=True), Array(0.5, dtype=float32, weak_type=True))
    """
    forward = _traced(fun, (residual_args, linear_args), "fun")
    example = tree.unflatten(forward.out_tree, [_Like(a) for a in forward.out_avals])
    backward = _traced(fun_transpose, (residual_args, example), "fun_transpose")
    wanted = tree.structure(linear_args)
    linear = [as_value(leaf) for leaf in tree.leaves(linear_args)]
    types = [(v.aval.shape, v.aval.dtype) for v in linear]
    if backward.out_tree != wanted or [(a.shape, a.dtype) for a in backward.out_avals] != types:
        raise TypeError(
            f"the transpose of linear_call, {function_line(fun_transpose)}, must return what is like the linear "
            f"arguments, {wanted} of {[v.aval.str_short() for v in linear]}, but it returns "
            f"{backward.out_tree} of {[a.str_short() for a in backward.out_avals]}"
        )
    residuals = [as_value(leaf) for leaf in tree.leaves(residual_args)]
    captured = len(forward.captured), len(backward.captured)
    params = _LinearCall(forward.computation, backward.computation, len(residuals), captured)
    results = params.bind([*residuals, *forward.captured, *backward.captured, *linear])
    return tree.unflatten(forward.out_tree, overlaid_all(results, forward.out_avals))


@dataclass(frozen=True, slots=True)
class _Like(HasType):
    """An example that has only a type."""

    aval: ShapedArray


@LINEAR_CALL.def_jvp
def _linear_call_jvp(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    params: _LinearCall = call.params
    *known, linear = params.split(tangents)
    if not all(isinstance(t, Zero) for part in known for t in part):
        raise TypeError("linear_call is differentiated with respect to its residual arguments")
    moved = [*primals[: len(primals) - len(linear)], *(instantiate(t) for t in linear)]
    return bind_call(call, primals), list(bind_call(call, moved))


@LINEAR_CALL.def_transpose
def _linear_call_transpose(
    call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]
) -> Sequence[Value | None]:
    params: _LinearCall = call.params
    residuals, ours, theirs, linear = params.split(operands)
    avals = call.computation.root.shape.elements
    back = _LinearCall(params.backward, params.forward, params.residuals, (len(theirs), len(ours)))
    given = [zeros(ShapedArray(s.dimensions, s.element.dtype)) if ct is None else ct for ct, s in zip(cts, avals)]
    found = back.bind([*residuals, *theirs, *ours, *given])
    return [*[None] * (len(operands) - len(linear)), *found]


# --- closures


def closure_convert(fun: Function, *example_args: Any) -> tuple[Function, list[Any]]:
    """`fun`, traced on arguments like `example_args`, as a function that takes the traced values of its closure as
    further arguments; and these values. JAX's `closure_convert`.

    It makes a function that is an argument of a custom derivative rule known to the rule: pass the values as arguments.

    >>> scale = jnp.array(3.0)
    >>> f, consts = hloom.closure_convert(lambda x: hloom.lax.mul(x, scale), 1.0)
    >>> f(2.0, *consts)
    Array(6., dtype=float32)
    """
    check_function(fun, "closure_convert")
    traced = _traced(fun, example_args, "function")
    hoisted = [isinstance(v, Tracer) and is_inexact(v.aval.dtype) for v in traced.captured]
    values = [v for v, h in zip(traced.captured, hoisted, strict=True) if h]

    def converted(*args: Any) -> Any:
        own, given = args[: len(args) - len(values)], iter(args[len(args) - len(values) :])
        leaves, structure = tree.flatten(tuple(own))
        if structure != traced.in_tree:
            raise TypeError(
                "The inputs to the closure produced by closure_convert must have the structure of the example "
                f"arguments of {function_line(fun)}, {traced.in_tree}, but got {structure}"
            )
        captured = [as_value(next(given)) if h else v for v, h in zip(traced.captured, hoisted, strict=True)]
        results = eval_computation(traced.computation, [*(as_value(leaf) for leaf in leaves), *captured])
        return tree.unflatten(traced.out_tree, overlaid_all(results, traced.out_avals))

    return converted, values


class _Rule:
    """The backward function of a `custom_gradient`, traced: a pytree of the values that it uses."""

    def __init__(self, traced: TracedFunction, values: Sequence[Any]) -> None:
        self.traced = traced
        self.values = list(values)


tree.register_pytree_node(_Rule, lambda r: (r.values, r.traced), lambda traced, values: _Rule(traced, list(values)))


def custom_gradient(fun: Function) -> Function:
    """A function with its own reverse-mode rule, given in one piece: ``fun(*args)`` returns the result and a function
    from its cotangent to a cotangent for each argument. JAX's `custom_gradient`.

    >>> @hloom.custom_gradient
    ... def clipped(x):
    ...     return x**2, lambda ct: jnp.clip(ct * 2 * x, -1, 1)
    >>> clipped(3.0), hloom.grad(clipped)(3.0)
    (9.0, Array(1., dtype=float32, weak_type=True))
    """
    check_function(fun, "custom_gradient")

    def value_alone(*args: Any, **kwargs: Any) -> Any:
        return _value_and_rule(fun, args, kwargs)[0]

    def forward(*args: Any, **kwargs: Any) -> Any:
        result, rule = _value_and_rule(fun, args, kwargs)
        leaves, structure = tree.flatten(result)
        avals = [as_value(leaf).aval for leaf in leaves]

        def of_moving(*given: Any) -> Any:
            cts = iter(given)
            every = [next(cts) if is_inexact(a.dtype) else float0_zeros(a) for a in avals]
            found = rule(tree.unflatten(structure, every))
            return found if isinstance(found, tuple | list) else (found,)

        traced = _traced(of_moving, [_Like(a) for a in avals if is_inexact(a.dtype)], "rule")
        return result, _Rule(traced, traced.captured)

    def backward(rule: _Rule, cotangent: Any) -> Any:
        traced = rule.traced
        given = [as_value(ct) for ct in tree.leaves(cotangent) if ct.dtype.kind != "V"]
        results = eval_computation(traced.computation, [*given, *rule.values])
        return tree.unflatten(traced.out_tree, overlaid_all(results, traced.out_avals))

    wrapped = custom_vjp(wraps(fun)(value_alone))
    wrapped.defvjp(forward, wraps(fun)(backward))
    return wrapped


def _value_and_rule(fun: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Function]:
    found = fun(*args, **kwargs)
    if not isinstance(found, tuple | list) or len(found) != 2 or not callable(found[1]):
        raise TypeError(
            "a custom_gradient function must return a pair (result, function of the cotangent), but "
            f"{function_line(fun)} returned a {type(found).__name__}"
        )
    return found[0], found[1]


# --- the two passes as functions


def fwd_and_bwd(
    fun: Function, argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Function, Function]:
    """The forward and the backward pass of `fun` as two functions, jitted if `jitted`. JAX's `fwd_and_bwd`.

    Returns:
      ``fwd(*args)`` -> (result, residuals), and aux if `has_aux`; ``bwd(residuals, cotangent)`` -> the cotangents of
      the arguments that `argnums` names: one, or a tuple where `argnums` is a sequence.

    >>> fwd, bwd = hloom.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> value, residuals = fwd(2.0, 3.0)
    >>> bwd(residuals, 1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_function(fun, "fwd_and_bwd")
    positions = checked_argnums(argnums)

    def fwd(*args: Any, **kwargs: Any) -> Any:
        chosen = resolve_argnums(positions, len(args), argnums, fun)
        return vjp(of_chosen(fun, args, kwargs, chosen), *(args[i] for i in chosen), has_aux=has_aux)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        found = residuals(cotangent)
        return found if isinstance(argnums, Sequence) else found[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
