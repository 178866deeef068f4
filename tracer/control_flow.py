"""Control flow that depends on traced values: while_loop, cond, switch; `scan.py` has the loops over arrays.

They are HLO's ops while and conditional. Values that the functions use from outside become loop state that does not
change, or operands of all branches.

Source for names, arguments and errors: jax.lax.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..hlo.ir import HloComputation
from . import dtypes, tree
from .arguments import leaf_describer, values_of
from .array import as_value
from .aval import ShapedArray
from .context import current_context
from .core import Tracer, Value, bind_conditional, bind_while, eval_computation
from .errors import TreeStructureError
from .ops import clamp, compare, convert, scalar_like
from .recording import returns_element, takes_one_tuple, trace_to_computation
from .source import function_line, user_line
from .traced import DerivedCache, Traced, trace_function, with_avals

_cache = DerivedCache()


def arguments_of(fun: Callable[..., Any], *args: Any, before: int = 0) -> tuple[list[Value], Any]:
    """The leaves of positional arguments as values, and the structure of (args, {}).

    before: how many arguments of `fun` come before these; messages name arguments by the parameters of `fun`.
    """
    leaves, treedef = tree.flatten((args, {}))
    return values_of(leaves, leaf_describer(fun, ((),) * before + args)), treedef


def avals_of(values: Sequence[Value]) -> list[ShapedArray]:
    return [v.aval for v in values]


# ---- carries: the types that go in must come out


def settled_carry(
    what: str, fun: Callable[..., Any], values: list[Value], trace: Callable[[list[ShapedArray]], Traced], treedef: Any
) -> tuple[list[Value], Traced]:
    """Carry values and the body traced on them: weakly typed values take the type that the body gives them.

    `trace` traces the body for carry types; its first results are the carry. TreeStructureError if the types differ.
    """
    for _ in range(3):
        traced = trace(avals_of(values))
        changed = list(values)
        for k, (value, out) in enumerate(zip(values, traced.out_avals)):
            if value.aval is not out and value.aval.weak_type and value.aval.shape == out.shape:
                dtype, _ = dtypes.promote([(value.aval.dtype, True), (out.dtype, out.weak_type)])
                changed[k] = convert(value, dtype, False)
        if all(a.aval is b.aval for a, b in zip(values, changed)):
            break
        values = changed
    _check_carry(what, fun, avals_of(values), traced.out_avals[: len(values)], treedef)
    return values, traced


def _check_carry(
    what: str, fun: Callable[..., Any], wanted: Sequence[ShapedArray], found: Sequence[ShapedArray], treedef: Any
) -> None:
    for k, (a, b) in enumerate(zip(wanted, found, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            differ = "dtypes" if a.shape == b.shape else "shapes"
            raise TreeStructureError(
                f"{what} body function carry input and carry output must have equal types, but they differ: the input "
                f"carry{_component(treedef, k)} has type {a.str_short()}, but the corresponding output carry component "
                f"has type {b.str_short()}, so the {differ} do not match.\n"
                f"  body function: {function_line(fun)}\n  at {user_line()}\n"
                "  Revise the function so that all output types match the corresponding input types (astype, or start "
                "with another dtype)."
            )


def _component(treedef: Any, position: int) -> str:
    """`` component [1]['w']`` of a carry that is more than one array."""
    path = tree.paths_of_structure(treedef)[position]
    return f" component {tree.keystr(path)}" if path else ""


def check_tree(what: str, fun: Callable[..., Any], wanted: Any, found: Any) -> None:
    if wanted != found:
        raise TreeStructureError(
            f"{what} body function carry input and carry output must have the same pytree structure, but they differ: "
            f"the input carry is {tree.describe(wanted)}, the output carry {tree.describe(found)}.\n"
            f"  body function: {function_line(fun)}\n  at {user_line()}\n"
            "  Revise the function so that the carry output has the same structure as the carry input."
        )


def runs_in_python(*trees: Any) -> bool:
    """Whether a loop or branch runs as the Python it is: `disable_jit` is on, and the values are known."""
    if not current_context().disable_jit:
        return False
    return all(not isinstance(x, Tracer) or x.to_concrete_value() is not None for x in tree.leaves(trees))


# ---- while


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """`body_fun` applied again and again to a carry (a pytree), from `init_val`, while `cond_fun(carry)` is true.

    Shapes and dtypes of the carry stay what they are: TreeStructureError, with both types, otherwise.
    """
    if runs_in_python(init_val):
        carry = tree.map(as_value, init_val)  # not the caller's NumPy arrays, which the body could write to
        while cond_fun(carry):
            carry = tree.map(as_value, body_fun(carry))
        return carry
    values, treedef = arguments_of(body_fun, init_val)
    carry_tree = tree.structure(init_val)

    def trace_body(avals: list[ShapedArray]) -> Traced:
        traced = trace_function(body_fun, treedef, avals)
        check_tree("while_loop", body_fun, carry_tree, traced.out_tree)
        return traced

    def make() -> tuple[Any, bool]:
        settled, body = settled_carry("while_loop", body_fun, values, trace_body, carry_tree)
        condition = trace_function(cond_fun, treedef, avals_of(settled))
        _check_condition(cond_fun, condition)
        computations = _loop(condition, body, len(settled))
        captured = (*condition.captured, *body.captured)
        return (*computations, avals_of(settled), captured), condition.is_closed and body.is_closed

    key = (treedef, *avals_of(values))
    condition, body, avals, captured = _cache.get((body_fun, cond_fun), key, make)
    start = [convert(v, a.dtype, a.weak_type) for v, a in zip(values, avals, strict=True)]
    results = bind_while(condition, body, [*start, *captured])[: len(start)]
    return tree.unflatten(carry_tree, with_avals(results, avals))


def _check_condition(cond_fun: Callable[..., Any], traced: Traced) -> None:
    types = [a.str_short() for a in traced.out_avals]
    if types != ["bool[]"] or not tree.treedef_is_leaf(traced.out_tree):
        raise TreeStructureError(
            f"cond_fun must return a boolean scalar, but {function_line(cond_fun)} returns "
            f"{', '.join(types) or 'nothing'}\n  at {user_line()}"
        )


def _loop(condition: Traced, body: Traced, count: int) -> tuple[HloComputation, HloComputation]:
    """Both computations on one tuple of (carry, what the condition captured, what the body captured)."""
    extra = [v.aval for v in (*condition.captured, *body.captured)]
    split = count + len(condition.captured)
    avals = [*body.in_avals, *extra]

    def run_condition(values: list[Value]) -> list[Value]:
        return eval_computation(condition.computation, values[:split])

    def run_body(values: list[Value]) -> list[Value]:
        carry = eval_computation(body.computation, [*values[:count], *values[split:]])
        return [*carry, *values[count:]]

    traced_condition = trace_to_computation(run_condition, avals, f"{condition.name}_condition").computation
    traced_body = trace_to_computation(run_body, avals, f"{body.name}_body").computation
    return takes_one_tuple(returns_element(traced_condition)), takes_one_tuple(traced_body)


# ---- conditional


_NO_OPERAND: Any = object()


def cond(pred: Any, true_fun: Any, false_fun: Any, *operands: Any, operand: Any = _NO_OPERAND) -> Any:
    """`true_fun(*operands)` if the scalar `pred` is true (or not 0), else `false_fun(*operands)`.

    Both are traced, one is run; their results have the same structure and types (TreeStructureError).
    """
    operands = _with_operand("cond", operands, operand)
    if not (callable(true_fun) and callable(false_fun)):
        raise TypeError("lax.cond: true_fun and false_fun must be functions")
    value = as_value(pred)
    if value.aval.shape:
        raise TreeStructureError(f"Pred must be a scalar, got {value.aval.str_short()}\n  at {user_line()}")
    if runs_in_python(value):
        return true_fun(*operands) if value else false_fun(*operands)
    if value.aval.dtype != np.bool_:
        value = compare(value, "NE", scalar_like(value, 0))
    return _branches("cond", value, (true_fun, false_fun), ("true_fun", "false_fun"), operands)


def _with_operand(name: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    """The operands, of which one may be given by keyword."""
    if operand is _NO_OPERAND:
        return operands
    if operands:
        raise TypeError(f"lax.{name}: give operands by position or one by the keyword `operand`, not both")
    return (operand,)


def switch(
    index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _NO_OPERAND
) -> Any:
    """`branches[index](*operands)`; an index out of range is clamped. All branches are traced, one is run."""
    operands = _with_operand("switch", operands, operand)
    if not branches or not all(callable(b) for b in branches):
        raise ValueError("lax.switch needs a sequence of at least one function")
    value = as_value(index)
    if value.aval.shape or not dtypes.is_integer(value.aval.dtype):
        raise TreeStructureError(f"Index must be an integer scalar, got {value.aval.str_short()}\n  at {user_line()}")
    last = len(branches) - 1
    if runs_in_python(value):
        return branches[builtins.min(builtins.max(int(value), 0), last)](*operands)
    if not last:
        return branches[0](*operands)
    value = convert(value, dtypes.int32, False)
    value = clamp(scalar_like(value, 0), value, scalar_like(value, last))
    names = [f"branch {k}" for k in range(len(branches))]
    return _branches("switch", value, tuple(branches), names, operands)


def _branches(
    what: str, index: Value, functions: Sequence[Callable[..., Any]], names: Sequence[str], operands: tuple[Any, ...]
) -> Any:
    values, treedef = arguments_of(functions[0], *operands)

    def make() -> tuple[Any, bool]:
        traced = [trace_function(f, treedef, avals_of(values)) for f in functions]
        avals = _joined_types(what, traced, functions, names)
        captured = [v for t in traced for v in t.captured]
        computations = _conditional(traced, avals_of(values), avals)
        return (computations, avals, traced[0].out_tree, captured), all(t.is_closed for t in traced)

    computations, avals, out_tree, captured = _cache.get(functions, (treedef, *avals_of(values)), make)
    results = bind_conditional(computations, index, [*values, *captured])
    return tree.unflatten(out_tree, with_avals(results, avals))


def _joined_types(
    what: str, traced: Sequence[Traced], functions: Sequence[Callable[..., Any]], names: Sequence[str]
) -> list[ShapedArray]:
    """The results' types: equal in all branches but for weak types, which give way."""
    first = traced[0]
    for other, fun, name in zip(traced[1:], functions[1:], names[1:], strict=True):
        where = f"{names[0]} is {function_line(functions[0])}, {name} is {function_line(fun)}\n  at {user_line()}"
        if other.out_tree != first.out_tree:
            raise TreeStructureError(
                f"{what} branch outputs must have the same pytree structure, but they differ: {names[0]} returns "
                f"{tree.describe(first.out_tree)}, {name} {tree.describe(other.out_tree)}.\n  {where}"
            )
        for a, b in zip(first.out_avals, other.out_avals, strict=True):
            if a.shape != b.shape or a.dtype != b.dtype:
                raise TreeStructureError(
                    f"{what} branches must have equal output types, but they differ: an output of {names[0]} has type "
                    f"{a.str_short()}, the corresponding output of {name} {b.str_short()}.\n  {where}"
                )
    types = zip(*[t.out_avals for t in traced], strict=True)
    return [same[0].with_weak_type(all(a.weak_type for a in same)) for same in types]


def _conditional(
    traced: Sequence[Traced], operands: Sequence[ShapedArray], results: Sequence[ShapedArray]
) -> list[HloComputation]:
    """Each branch on one tuple of the operands and all that the branches captured."""
    avals = [*operands, *[v.aval for t in traced for v in t.captured]]
    computations = []
    begin = len(operands)
    for t in traced:
        end = begin + len(t.captured)

        def run(values: list[Value], t: Traced = t, begin: int = begin, end: int = end) -> list[Value]:
            return eval_computation(t.computation, [*values[: len(operands)], *values[begin:end]])

        computations.append(takes_one_tuple(trace_to_computation(run, avals, t.name).computation))
        begin = end
    return computations
