"""Control flow that depends on traced values: while_loop, cond, switch.

`scan.py` has the loops over arrays, `platforms.py` has platform_dependent, `types.py` the argument and result types of
all their functions.

They are HLO's ops while and conditional. Values that the functions use from outside become loop state that does not
change, or operands of all branches.

Names, arguments and errors follow jax.lax.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...hlo.ir import HloComputation
from .. import dtypes
from ..arguments import entered
from ..arrays.array import as_value
from ..aval import ShapedArray
from ..core import Tracer, Value, bind_conditional, bind_while, varying
from ..errors import TreeStructureError
from ..ops import clamp, compare, convert, scalar_like
from ..recording import returns_element, run_computation, takes_one_tuple, trace_to_computation
from ..references.refs import Ref, check_aliases, replace_all, values_of_references
from ..settings.context import current_context
from ..source import function_line
from ..traced import DerivedCache, Traced, taking_references, trace_function, with_avals
from ..trees import tree
from .equal_functions import earlier
from .progress import reporting
from .types import Body, arguments_of, avals_of, joined_types, leaf_names, require_functions, started

_cache = DerivedCache()


def runs_in_python(*trees: Any) -> bool:
    """Whether a loop or branch runs as the Python it is: `disable_jit` is on, and the values are known."""
    if not current_context().disable_jit:
        return False
    return all(not isinstance(x, Tracer) or x.to_concrete_value() is not None for x in tree.leaves(trees))


# ---- while


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """`body_fun` applied again and again to a carry (a pytree), from `init_val`, while `cond_fun(carry)` is true.

    Shapes and dtypes of the carry must not change: TreeStructureError, with both types, otherwise.

    >>> lax.while_loop(lambda n: n < 100, lambda n: 3 * n, 1)
    Array(243, dtype=int32, weak_type=True)
    """
    require_functions("while_loop", cond_fun=cond_fun, body_fun=body_fun)
    cond_fun, body_fun = earlier(cond_fun), earlier(body_fun)
    (init_val,) = entered(init_val)
    if runs_in_python(init_val):
        carry = tree.map(as_value, init_val)  # not the caller's NumPy arrays, which the body could write to
        while cond_fun(carry):
            carry = tree.map(as_value, body_fun(carry))
        return carry
    values, treedef = arguments_of(body_fun, init_val)
    described = Body("while_loop", body_fun, tree.structure(init_val))

    def trace_body(avals: list[ShapedArray]) -> Traced:
        traced = trace_function(body_fun, treedef, avals, what="while_loop")
        described.check_structure(traced.out_tree)
        return traced

    leaves = run_loop(described, cond_fun, trace_body, values, treedef, (body_fun, cond_fun))
    if leaves is None:
        return _with_its_condition_in_the_body(cond_fun, body_fun, init_val)
    return tree.unflatten(described.tree, leaves)


def _with_its_condition_in_the_body(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any) -> Any:
    """A loop with a condition that writes references, which conditions of programs cannot."""

    def body(state: Any) -> Any:
        carry = body_fun(state[1])
        return cond_fun(carry), carry

    return while_loop(lambda state: state[0], body, (cond_fun(init), init))[1]


def run_loop(
    described: Body,
    cond_fun: Callable[[Any], Any],
    trace_body: Callable[[list[ShapedArray]], Traced],
    values: list[Value],
    treedef: Any,
    sources: Sequence[Any],
) -> list[Value] | None:
    """The last state of a while loop from the state `values`. The loop is made once for `sources` and the types. None
    if the condition writes references.

    `treedef`: the structure of the arguments of `cond_fun` and of the body that `trace_body` traces.
    """

    def make() -> tuple[Any, bool]:
        settled, body = described.settle(values, trace_body)
        condition = trace_function(cond_fun, treedef, avals_of(settled))
        _check_condition(cond_fun, condition)
        if condition.references_written(()):
            return None, False
        references, count = body.references_written(()), len(settled)
        may_be_kept = condition.may_be_kept and body.may_be_kept
        body = taking_references(body, references, count, count)
        condition = taking_references(condition, references, count, None)
        computations = _loop(condition, body, count + len(references))
        captured = (*condition.captured, *body.captured)
        return (*computations, body, captured, references), may_be_kept

    made = _cache.get(sources, (treedef, *avals_of(values)), make)
    if made is None:
        return None
    condition, body, traced, captured, references = made
    start = [started(v, a) for v, a in zip(values, traced.in_avals)]
    start += values_of_references(references)
    state = [*start, *values_of_references(captured)]
    results = reporting(body, None, lambda: bind_while(condition, body, state))
    found = with_avals(results[: len(start)], traced.out_avals)
    for k in traced.unchanged(len(values)):
        found[k] = start[k]
    if references:
        replace_all(references, found[len(values) :])
        del found[len(values) :]
    return found


def _check_condition(cond_fun: Callable[..., Any], traced: Traced) -> None:
    is_leaf = tree.treedef_is_strict_leaf(traced.out_tree)
    found = traced.out_avals[0] if is_leaf else None
    if found is None or found.shape or found.dtype != np.bool_:
        types = "" if found is None else f"output type(s) [ShapedArray({found.str_short()})]"
        described = types or f"pytree {traced.out_tree}"
        raise TreeStructureError(
            f"cond_fun must return a boolean scalar, but got {described}. It is {function_line(cond_fun)}"
        )


def _loop(condition: Traced, body: Traced, count: int) -> tuple[HloComputation, HloComputation]:
    """Both computations on one tuple of (carry, the condition's captured values, the body's captured values)."""
    extra = [*condition.captured_avals, *body.captured_avals]
    split = count + len(condition.captured)
    avals = [*body.in_avals, *extra]

    def run_condition(values: list[Value]) -> list[Value]:
        return run_computation(condition.computation, values[:split])

    def run_body(values: list[Value]) -> list[Value]:
        carry = run_computation(body.computation, [*values[:count], *values[split:]])
        return [*carry, *values[count:]]

    traced_condition = trace_to_computation(run_condition, avals, f"{condition.name}_condition").computation
    traced_body = trace_to_computation(run_body, avals, f"{body.name}_body").computation
    return takes_one_tuple(returns_element(traced_condition)), takes_one_tuple(traced_body)


# ---- conditional


_NO_OPERAND: Any = object()


def cond(pred: Any, true_fun: Any, false_fun: Any, *operands: Any, operand: Any = _NO_OPERAND) -> Any:
    """`true_fun(*operands)` if the scalar `pred` is true (or not 0), else `false_fun(*operands)`.

    Both are traced, one is run; their results have the same structure and types (TreeStructureError). Also taken:
    ``cond(pred, x, true_fun, y, false_fun)``, where each function has an operand of its own, and None for none.

    >>> hloom.grad(lambda x: lax.cond(x > 0, lambda x: x**2, lambda x: -x, x))(3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    if not callable(true_fun) and callable(false_fun) and len(operands) == 2 and callable(operands[1]):
        x, on_true, y, on_false = true_fun, false_fun, *operands
        return cond(pred, lambda x, _: on_true(x), lambda _, y: on_false(y), x, y)
    operands = _with_operand("cond", operands, operand)
    require_functions("cond", true_fun=true_fun, false_fun=false_fun)
    is_none = "lax.cond: cond predicate is None: it"
    value = _scalar(pred, f"{is_none if pred is None else 'lax.cond: Pred type'} must be either boolean or number")
    if value.aval.shape:
        raise TreeStructureError(
            f"lax.cond: Pred must be a scalar, got {value.aval.str_short()}\n  Reduce it (all, any), or choose "
            "element by element with hloom.numpy.where."
        )
    dtype = value.aval.dtype
    if not (dtype == np.bool_ or dtypes.is_integer(dtype) or dtypes.is_floating(dtype)):
        raise TypeError(f"lax.cond: Pred type must be either boolean or number, got {value.aval.str_short()}")
    if runs_in_python(value):
        return true_fun(*operands) if value else false_fun(*operands)
    if dtype != np.bool_:
        value = compare(value, "NE", scalar_like(value, 0))
    return _branches("cond", value, (true_fun, false_fun), ("true_fun", "false_fun"), operands)


def _scalar(given: Any, rule: str) -> Value:
    """The predicate or index, as a value."""
    try:
        value: Value = as_value(given)
    except TypeError as error:
        raise type(error)(f"{rule}, got {given!r}: {error}") from None
    return value


def _with_operand(name: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    """The operands; one may be given by keyword."""
    if operand is _NO_OPERAND:
        return operands
    if operands:
        raise TypeError(f"lax.{name}: give operands by position or one by the keyword `operand`, not both")
    return (operand,)


def switch(
    index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _NO_OPERAND
) -> Any:
    """`branches[index](*operands)`; an index out of range is clamped. All branches are traced, one is run.

    >>> lax.switch(1, [jnp.sin, jnp.square, jnp.negative], 3.0)
    Array(9., dtype=float32, weak_type=True)
    """
    operands = _with_operand("switch", operands, operand)
    branches = tuple(branches)
    require_functions("switch", **{f"branches[{k}]": b for k, b in enumerate(branches)})
    if not branches:
        raise ValueError("lax.switch: `branches` is empty; it needs at least one function")
    value = _scalar(index, "lax.switch: Index type must be an integer")
    if value.aval.shape or not dtypes.is_integer(value.aval.dtype):
        raise TreeStructureError(
            f"lax.switch: Index type must be an integer, and a scalar, got {value.aval.str_short()}"
        )
    last = len(branches) - 1
    if not last:
        return branches[0](*operands)
    value = convert(value, dtypes.int32, False)
    value = clamp(scalar_like(value, 0), value, scalar_like(value, last))
    if runs_in_python(value):
        return branches[int(value)](*operands)
    names = [f"branch {k}" for k in range(len(branches))]
    return _branches("switch", value, branches, names, operands)


def _branches(
    what: str, index: Value, functions: Sequence[Callable[..., Any]], names: Sequence[str], operands: tuple[Any, ...]
) -> Any:
    if any(isinstance(leaf, Ref) for leaf in tree.leaves(operands)):
        return _branches_on_references(what, index, functions, names, operands)
    values, treedef = arguments_of(functions[0], *operands)

    def make() -> tuple[Any, bool]:
        different = {id(f): f for f in functions}
        by_function = {
            number: trace_function(f, treedef, avals_of(values), float0_results=True, what=what)
            for number, f in different.items()
        }
        traced = [by_function[id(f)] for f in functions]
        avals = joined_types(what, traced, functions, names)
        may_be_kept = all(t.may_be_kept for t in traced)
        references = list(dict.fromkeys([r for t in traced for r in t.references_written(())]))
        traced = [taking_references(t, references, len(values), len(avals)) for t in traced]
        captured = list({id(v): v for t in traced for v in t.captured}.values())
        operands = [*avals_of(values), *[r.aval.inner_aval for r in references]]
        computations = _conditional(traced, operands, captured, avals)
        return (computations, avals, traced[0].out_tree, captured, references), may_be_kept

    computations, avals, out_tree, captured, references = _cache.get(functions, (treedef, *avals_of(values)), make)
    outside = values_of_references([*captured, *references])
    given = [*outside[: len(captured)], *values, *outside[len(captured) :]]
    results = bind_conditional(computations, index, given)
    replace_all(references, results[len(avals) :])
    return tree.unflatten(out_tree, with_avals(results[: len(avals)], avals))


def _branches_on_references(
    what: str, index: Value, functions: Sequence[Callable[..., Any]], names: Sequence[str], operands: tuple[Any, ...]
) -> Any:
    """The same, where operands have references: branches use them as those from outside."""
    leaves, structure = tree.flatten(operands)
    labels = [n for k, o in enumerate(operands) for n in leaf_names(tree.structure(o), f"x{k + 1}")]
    references = {k: leaf for k, leaf in enumerate(leaves) if isinstance(leaf, Ref)}

    def with_references(function: Callable[..., Any]) -> Callable[..., Any]:
        outside = [v for v in _closed_over(function) if isinstance(v, Ref)]
        check_aliases(leaves, labels, outside, what)

        def branch(*arrays: Any) -> Any:
            rest = iter(arrays)
            filled = [references[k] if k in references else next(rest) for k in range(len(leaves))]
            return function(*tree.unflatten(structure, filled))

        branch.__name__ = getattr(function, "__name__", "branch")
        return branch

    arrays = tuple([leaf for leaf in leaves if not isinstance(leaf, Ref)])
    return _branches(what, index, [with_references(f) for f in functions], names, arrays)


def _closed_over(function: Any) -> list[Any]:
    """The objects in a Python function's closure."""
    return [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if _is_filled(cell)]


def _is_filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _conditional(
    traced: Sequence[Traced],
    operands: Sequence[ShapedArray],
    captured: Sequence[Any],
    results: Sequence[ShapedArray],
) -> list[HloComputation]:
    """Each branch on one tuple of the `captured` values of all branches, and of the operands."""
    places = {id(v): k for k, v in enumerate(captured)}
    avals = [*{id(v): a for t in traced for v, a in zip(t.captured, t.captured_avals)}.values(), *operands]
    made: dict[int, HloComputation] = {}
    for t in traced:

        def run(values: list[Value], t: Traced = t) -> list[Value]:
            own_captured = [values[places[id(v)]] for v in t.captured]
            found = run_computation(t.computation, [*values[len(captured) :], *own_captured])
            manual = current_context().manual_axes
            typed = [varying(v, a.vma, manual) if a.vma else v for v, a in zip(found, results, strict=False)]
            return [*typed, *found[len(results) :]]

        if id(t) not in made:
            made[id(t)] = takes_one_tuple(trace_to_computation(run, avals, t.name).computation)
    return [made[id(t)] for t in traced]
