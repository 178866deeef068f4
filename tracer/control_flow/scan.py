"""Loops that run a known number of times: scan, fori_loop, map.

A scan is the primitive SCAN. Its meaning is a computation that holds a while loop. The parameters of its
calls are a `Scan`, which describes the loop for transformations.

Names, arguments and errors follow jax.lax.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ...hlo.builder import make_constant, make_get_tuple_element, make_instruction, make_parameter
from ...hlo.ir import HloComputation, Metadata
from ...hlo.opcode import Opcode
from ...hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from ...hlo.shape import Shape
from ...hlo.sizes import as_size, is_symbolic
from ...hlo.support.loading import load
from ...hlo.support.records import dataclass
from ...hlo.support.tracebacks import Signal
from .. import dtypes, ops
from ..arguments import LeafName, abstract, entered, has_own, leaf_describer, values_of
from ..arrays.array import Array, array_from_scalar, as_value
from ..arrays.overlay import storages
from ..aval import ShapedArray
from ..core import (
    Call,
    Primitive,
    Tracer,
    Value,
    bind_call,
    bind_while,
    current_metadata,
    current_trace,
    run_program,
)
from ..errors import NonArrayArgumentError, TreeStructureError
from ..ops import convert, read_block, scalar_like, write_block
from ..recording import returns_element, run_computation, takes_one_tuple, trace_to_computation, with_parameters
from ..references.refs import Ref, check_aliases, replace_all, values_of_references
from ..settings.context import current_context
from ..sharding.lenience import refuse_divided
from ..source import function_line
from ..traced import DerivedCache, Traced, taking_references, trace_function, with_avals
from ..trees import tree
from .branches import run_loop, runs_in_python
from .equal_functions import earlier
from .progress import reporting
from .types import Body, arguments_of, avals_of, leaf_names, require_functions, started

_cache = DerivedCache()


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """The parameters of a call of SCAN. The call's operands: constants, the initial carry, the arrays scanned over."""

    body: HloComputation
    """Takes constants, carry, one slice of each array, and the index of the slices, an s32 scalar; returns the carry,
    then one slice of each result. Flat."""
    num_consts: int
    num_carry: int
    length: int
    reverse: bool
    is_counted: bool = False
    """The user's function takes the index, as in `fori_loop`."""

    def call(self, computation: HloComputation) -> Call:
        """The call with the meaning `computation` on flat operands."""
        attributes = (("length", str(self.length)), ("reverse", str(self.reverse).lower()))
        return Call(SCAN, computation, self, self.body.name, attributes)


INDEX = ShapedArray((), dtypes.int32)
"""The type of the index that a body takes."""

SCAN = Primitive("scan", evaluate=run_program)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """A loop with a carry and arrays: ``carry, y = f(carry, x)`` for each x along the first axis of `xs` (a pytree).

    Returns the last carry and the stacked ys. `length` is needed where `xs` has no arrays; `reverse` goes from the last
    x to the first. `unroll` is accepted: how a loop is unrolled is the backend's business.

    >>> lax.scan(lambda total, x: (total + x, total * x), 0.0, jnp.array([1.0, 2.0, 3.0]))
    (Array(6., dtype=float32), Array([0., 2., 9.], dtype=float32))
    """
    require_functions("scan", f=f)
    f = earlier(f)
    _check_unroll("scan", unroll)
    if has_own(init, xs):
        return load(".own_scan", __package__).scan_own(scan, f, init, xs, length, reverse)  # type: ignore[no-any-return]
    arrays, xs_tree = tree.flatten(xs)
    if any(isinstance(x, Ref) for x in arrays):
        return _scan_references(f, init, arrays, xs_tree, length, reverse)
    inputs = values_of(arrays, leaf_describer(f, ((), xs)))
    count = length_of(inputs, xs_tree, length)
    if count and current_context().disable_jit:
        return _scan_in_python(f, init, inputs, xs_tree, count, reverse)
    carry, _ = arguments_of(f, init)
    described = Body("scan", f, tree.structure(init))
    treedef = tree.structure(((init, xs), {}))
    slices = _slices(inputs)

    def trace_body(avals: list[ShapedArray]) -> Traced:
        traced = trace_function(f, treedef, [*avals, *slices], what="scan")
        pair = [] if tree.treedef_is_strict_leaf(traced.out_tree) else traced.out_tree.children()
        if len(pair) != 2:
            raise TreeStructureError(
                f"scan body output must be a pair, got {_described(traced)}. {function_line(f)} must return (carry, y)."
            )
        described.check_structure(pair[0])
        return traced

    def settle() -> Traced:
        return described.settle(carry, trace_body)[1]

    try:
        traced, leaves = _bind_scan(f, ("scan", treedef), settle, carry, inputs, count, reverse, is_counted=False)
    except _ByOperation:
        return _scan_in_python(f, init, inputs, xs_tree, count, reverse)
    pair: tuple[Any, Any] = tree.unflatten(traced.out_tree, leaves)
    return pair


class _ByOperation(Signal):
    """Rules of users in the body may write to references when gradients are known: the loop is differentiated iteration
    by iteration, operation by operation, as jitted functions are."""


def _scan_references(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, arrays: list[Any], xs_tree: Any, length: Any, reverse: bool
) -> tuple[Any, Any]:
    """The loop over references, too: each iteration has references to rows; the values written there are a further
    result."""
    check_aliases(arrays, leaf_names(xs_tree, "xs"), (), "scan")
    places = [k for k, x in enumerate(arrays) if isinstance(x, Ref)]

    def body(carry: Any, rows: Any) -> tuple[Any, Any]:
        given = list(rows)
        for k in places:
            given[k] = Ref(rows[k], f"row of xs[{k}]", arrays[k].aval.kind)
        carry, y = f(carry, tree.unflatten(xs_tree, given))
        return carry, (y, [given[k].current() for k in places])

    body.__name__ = getattr(f, "__name__", "body")
    carry, (ys, written) = scan(body, init, values_of_references(arrays), length, reverse)
    replace_all([arrays[k] for k in places], written)
    return carry, ys


def _described(traced: Traced) -> str:
    """The result of a function, described."""
    if tree.treedef_is_strict_leaf(traced.out_tree):
        return traced.out_avals[0].str_short()
    return tree.describe(traced.out_tree)


def _slices(inputs: Sequence[Value]) -> list[ShapedArray]:
    return [x.aval.row() for x in inputs]


def _bind_scan(
    fun: Callable[..., Any], key: Hashable, settle: Callable[[], Traced], carry: list[Value], inputs: list[Value],
    length: int, reverse: bool, *, is_counted: bool,
) -> tuple[Traced, list[Value]]:  # fmt: skip
    """The loop with the body that `settle` traces, bound: the body, and the leaves of carry and stacked results.

    It is made once for `fun`, the `key` and the types. `is_counted`: the body takes the index as its last argument.
    """

    def make() -> tuple[Any, bool]:
        settled = settle()
        references, count = settled.references_written(()), len(carry)
        traced = taking_references(settled, references, count, count)
        rule = _scan_rule(traced, count + len(references), length, reverse, is_counted)
        may_be_kept = traced.may_be_kept and not any(r.is_traced for r in references)
        return (rule.call(_scan_computation(rule, traced, inputs)), traced, references), may_be_kept

    types = (*avals_of(carry), *avals_of(inputs))
    call, traced, references = _cache.get((fun,), (key, length, reverse, is_counted, *types), make)
    if traced.rules_take_references and length and not is_counted and current_trace().differentiates:
        raise _ByOperation
    start = [started(v, a) for v, a in zip(carry, traced.in_avals)]
    start += values_of_references(references)
    results = bind_call(call, [*values_of_references(traced.captured), *start, *inputs])
    stacked = [ShapedArray((length, *a.shape), a.dtype, a.weak_type) for a in traced.out_avals[len(start) :]]
    found = with_avals(results, [*traced.out_avals[: len(start)], *stacked])
    for k in traced.unchanged(len(carry)):
        found[k] = start[k]
    if references:
        replace_all(references, found[len(carry) : len(start)])
        del found[len(carry) : len(start)]
    return traced, found


def _check_unroll(name: str, unroll: Any) -> None:
    """ValueError or TypeError unless `unroll` is a boolean or a number of steps, which is known."""
    if isinstance(unroll, Tracer):
        raise unroll.unknown(
            f"The `unroll` argument to `{name}` expects a concrete `int` or `bool` value", "Make it static."
        )
    try:
        steps = operator.index(unroll)
    except TypeError:
        raise TypeError(f"the `unroll` argument of {name} must be an int or a bool, not {unroll!r}") from None
    if steps < 0:
        raise ValueError(f"`unroll` must be a bool or at least 0, but {name} got {steps}")


def length_of(inputs: Sequence[Value], xs_tree: Any, length: Any = None) -> int:
    """The number of iterations: the size of the leading axis of all `inputs`, and `length` if it is given."""
    names = leaf_names(xs_tree, "xs") if inputs else []
    for x, name in zip(inputs, names, strict=True):
        if not x.aval.shape:
            raise ValueError(
                f"scan got value with no leading axis to scan over: {name} is {x.aval.str_short()}, and needs one "
                "element for each iteration"
            )
        refuse_divided(x.aval, [0], "0th dimension of all xs should be replicated", ValueError)
    sizes = [x.aval.shape[0] for x in inputs]
    listed = ", ".join([f"{name} has {size}" for name, size in zip(names, sizes, strict=True)])
    if length is not None:
        count = _concrete_length(length)
        if any(size != count for size in sizes):
            raise ValueError(
                f"scan got `length` argument of {count} which disagrees with leading axis sizes {sizes}: {listed}"
            )
        return count
    if len(set(sizes)) > 1:
        why = f"values with different leading axis sizes: {listed}. They must be equal"
        raise ValueError(f"scan got {why}")
    if not sizes:
        why = "no values to scan over and `length` not provided: give one of them"
        raise ValueError(f"scan got {why}")
    return sizes[0]


def _concrete_length(length: Any) -> int:
    if isinstance(length, Tracer) and length.to_concrete_value() is None:
        raise length.unknown(
            "The `length` argument to `scan` expects a concrete `int` value",
            "Loops with a length that is computed: hloom.lax.fori_loop, hloom.lax.while_loop.",
        )
    if isinstance(length, float) and length.is_integer():
        length = int(length)
    try:
        count = as_size(length)
    except TypeError:
        raise TypeError(f"the `length` argument of scan must be an int, not {length!r}") from None
    if count < 0:
        raise ValueError(f"the `length` argument of scan is negative: {count}")
    if not is_symbolic(count) and count > MOST_STEPS:
        raise ValueError(
            f"the `length` argument of scan is {count}: its steps are counted in int32, up to {MOST_STEPS}\n  A loop "
            "of more turns: hloom.lax.fori_loop, hloom.lax.while_loop."
        )
    return count


MOST_STEPS = (1 << 31) - 1
"""Steps of a scan."""


def _scan_rule(traced: Traced, num_carry: int, length: int, reverse: bool, is_counted: bool = False) -> Scan:
    """The body, with its captured values as first parameters. `is_counted`: the function's last argument is the index
    of the slices."""
    own, consts = len(traced.in_avals), len(traced.captured)
    order = [*range(own, own + consts), *range(own), *([] if is_counted else [INDEX.hlo])]
    body = with_parameters(traced.computation, order, f"{traced.name}_body")
    return Scan(body, consts, num_carry, length, reverse, is_counted)


def _scan_computation(rule: Scan, traced: Traced, inputs: Sequence[Value]) -> HloComputation:
    """The loop over flat operands (constants, carry, arrays)."""
    operands = [*traced.captured_avals, *traced.in_avals[: rule.num_carry], *avals_of(inputs)]

    def run(values: list[Value]) -> list[Value]:
        return run_scan(rule, values)

    return trace_to_computation(run, operands, f"{traced.name}_scan").computation


def run_scan(rule: Scan, operands: Sequence[Value]) -> list[Value]:
    """A scan as a while loop, in the current trace: the last carry, then the stacked results; keys as their storage."""
    operands = storages(tuple(operands))
    consts, carry = operands[: rule.num_consts], operands[rule.num_consts : rule.num_consts + rule.num_carry]
    xs = operands[rule.num_consts + rule.num_carry :]
    slices = rule.body.root.shape.elements[rule.num_carry :]
    ys = [ops.zeros(ShapedArray((rule.length, *s.dimensions), s.element.dtype)) for s in slices]
    if rule.length == 0:
        return [*carry, *ys]
    sizes = (rule.num_carry, len(ys), rule.num_consts)

    def body(state: list[Value]) -> list[Value]:
        i, carry, ys, consts, xs = _parts(state, *sizes)
        place = ops.sub(array_from_scalar(rule.length - 1, dtypes.int32), i) if rule.reverse else i
        rows = [row_at(x, place) for x in xs]
        results = run_computation(rule.body, [*consts, *carry, *rows, place])
        new = results[rule.num_carry :]
        written = [write_block(b, _as_row(y), _first(place, b)) for b, y in zip(ys, new)]
        return [ops.add(i, scalar_like(i, 1)), *results[: rule.num_carry], *written, *consts, *xs]

    state = [array_from_scalar(0, dtypes.int32), *carry, *ys, *consts, *xs]
    avals = avals_of(state)
    line = current_metadata("scan", "while")  # asked for once: it is the same for all of the loop
    step = trace_to_computation(body, avals, "body_body", metadata=line).computation
    condition, step = _counts_to(rule.length, avals, line), takes_one_tuple(step)
    results = reporting(rule.body, rule.length, lambda: bind_while(condition, step, state))
    _, final, stacked, _, _ = _parts(results, *sizes)
    return [*final, *stacked]


def _counts_to(length: Any, state: Sequence[ShapedArray], metadata: Metadata | None) -> HloComputation:
    """The condition of a loop that counts up its first value to `length`. Written by hand: every loop has one."""
    if is_symbolic(length):
        less_than = lambda values: [ops.compare(values[0], "LT", array_from_scalar(length, values[0].aval.dtype))]  # noqa: E731
        traced = trace_to_computation(less_than, state, "condition_condition", metadata=metadata).computation
        return returns_element(takes_one_tuple(traced))
    parameter = make_parameter(0, Shape.tuple([a.hlo for a in state]))
    counter = make_get_tuple_element(parameter, 0)
    end = make_constant(length, counter.shape.element.dtype)
    less = CompareAttributes(ComparisonDirection.LT)
    test = make_instruction(Opcode.COMPARE, (counter, end), less, metadata=metadata)
    return HloComputation("condition_condition", (parameter, counter, end, test), test)


def _parts(
    state: list[Value], num_carry: int, num_ys: int, num_consts: int
) -> tuple[Value, list[Value], list[Value], list[Value], list[Value]]:
    """The state of the loop: index, carry, arrays to write, constants, arrays to read."""
    ends = (1 + num_carry, 1 + num_carry + num_ys, 1 + num_carry + num_ys + num_consts)
    return state[0], state[1 : ends[0]], state[ends[0] : ends[1]], state[ends[1] : ends[2]], state[ends[2] :]


def _first(place: Value, x: Value) -> list[Value]:
    """Start indices of the slice at index `place` of the first axis."""
    return [place, *[scalar_like(place, 0)] * (x.aval.ndim - 1)]


def _as_row(y: Value) -> Value:
    return ops.reshape(y, (1, *y.aval.shape))


def row_at(x: Value, place: Value) -> Value:
    """The slice of `x` at an index of its first axis, which is clamped."""
    block = read_block(x, _first(place, x), (1, *x.aval.shape[1:]))
    return ops.reshape(block, x.aval.shape[1:])


def _scan_in_python(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, inputs: list[Value], xs_tree: Any, length: int, reverse: bool
) -> tuple[Any, Any]:
    carry, ys = tree.map(as_value, init), []
    for i in range(length)[:: -1 if reverse else 1]:
        carry, y = f(carry, tree.unflatten(xs_tree, [x[i] for x in inputs]))
        carry = tree.map(as_value, carry)
        ys.append(y)
    ordered = ys[::-1] if reverse else ys

    def stack(*leaves: Any) -> Value:
        return ops.concatenate([_as_row(as_value(y)) for y in leaves], 0)

    return carry, tree.map(stack, *ordered)


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """f applied to each x along the first axis of `xs` (a pytree), one after the other; the stacked results."""
    require_functions("map", f=f)
    f = earlier(f)
    arrays, xs_tree = tree.flatten(xs)
    inputs = values_of(arrays, leaf_describer(f, (xs,)))
    count = length_of(inputs, xs_tree)

    def body(_: tuple[()], x: Any) -> tuple[tuple[()], Any]:
        return (), f(x)

    if count and current_context().disable_jit:
        return _scan_in_python(body, (), inputs, xs_tree, count, False)[1]
    treedef = tree.structure(((xs,), {}))

    def settle() -> Traced:
        return trace_function(f, treedef, _slices(inputs))

    traced, leaves = _bind_scan(f, ("map", treedef), settle, [], inputs, count, False, is_counted=False)
    return tree.unflatten(traced.out_tree, leaves)


def states(
    fun: Callable[..., Any], key: Hashable, step: Callable[[list[Value], list[Value]], list[Value]],
    start: list[Value], xs: list[Value], reverse: bool,
) -> list[Value]:  # fmt: skip
    """The stacked states of a loop over rows of `xs`: ``state = step(state, rows)``, from `start`, which is not among
    them. Each array of the state has as many elements as a row of its array in `xs`, and is stacked in the row's shape.
    The loop is made once for the user's function `fun`, the `key` and the types.
    """
    count = len(start)
    treedef = tree.structure((([0] * count, [0] * len(xs)), {}))

    def body(state: list[Value], rows: list[Value]) -> Any:
        new = [started(v, a.aval) for v, a in zip(step(state, rows), state, strict=True)]
        return new, [ops.reshape(v, row.aval.shape) for v, row in zip(new, rows, strict=True)]

    body.__name__ = getattr(fun, "__name__", "body")

    def settle() -> Traced:
        return trace_function(body, treedef, [*avals_of(start), *_slices(xs)])

    length = xs[0].aval.shape[0]
    _, leaves = _bind_scan(fun, key, settle, start, xs, length, reverse, is_counted=False)
    return leaves[count:]


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: int | bool | None = None
) -> Any:
    """`body_fun(i, carry)` for i = lower, lower + 1, ... below upper, from `init_val`. Constant bounds make it a scan.

    `unroll` is accepted with constant bounds: how a loop is unrolled is the backend's business.

    >>> lax.fori_loop(0, 5, lambda i, total: total + i, 0)
    Array(10, dtype=int32, weak_type=True)
    """
    require_functions("fori_loop", body_fun=body_fun)
    body_fun = earlier(body_fun)
    (init_val,) = entered(init_val)
    start, stop = _bounds(lower, upper)
    if unroll is not None:
        _check_unroll("fori_loop", unroll)
    if runs_in_python(start, stop):
        carry = tree.map(as_value, init_val)
        dtype, weak = start.aval.dtype, start.aval.weak_type
        first, last = start.item(), stop.item()
        for k in range(_steps(first, last)):
            carry = tree.map(as_value, body_fun(convert(array_from_scalar(first + k), dtype, weak), carry))
        return carry
    first, last = _known(start), _known(stop)
    steps: int | None = None
    if first is not None and last is not None and math.isfinite(last - first):
        steps = _steps(first, last)
    if steps is not None and steps <= MOST_STEPS:
        if isinstance(start, Array):
            return _counted_scan(start, steps, body_fun, init_val)
        return _scan_from(start, steps, body_fun, init_val)
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError(
            "Can only use `unroll` in fori_loop if the loop bounds are statically known; here they are traced"
        )
    return _while_between(start, stop, body_fun, init_val)


def _known(bound: Value) -> float | None:
    """The number that a bound is, also under a derivative, where only its tangent is traced."""
    array = bound.to_concrete_value() if isinstance(bound, Tracer) else bound
    return None if array is None else array.item()


def _steps(start: float, stop: float) -> int:
    """How many numbers start, start + 1, ... are less than `stop`."""
    return builtins.max(0, math.ceil(stop - start))


def _bounds(lower: Any, upper: Any) -> tuple[Value, Value]:
    """Both bounds of a fori_loop as scalars of one type of integers or floats."""
    lower, upper = (as_value(b) if is_symbolic(b) else b for b in (lower, upper))
    for bound in (lower, upper):
        try:
            abstract(bound, lambda: LeafName("bound", "fori_loop"))
        except NonArrayArgumentError:
            raise TreeStructureError(
                f"lower and upper of fori_loop must be integers or floats, not {bound!r} of type {type(bound).__name__}"
            ) from None
    values = [as_value(b) for b in (lower, upper)]
    types = [(v.aval.dtype, v.aval.weak_type) for v in values]
    strong = {dtype for dtype, weak in types if not weak}
    is_number = [dtypes.is_integer, dtypes.is_floating]
    if len(strong) > 1 or not any(all(is_kind(dtype) for dtype, _ in types) for is_kind in is_number):
        names = " and ".join(dtype.name for dtype, _ in types)
        raise TreeStructureError(
            f"lower and upper arguments to fori_loop must have equal types, integers or floats, got {names}"
        )
    if any(v.aval.shape for v in values):
        shapes = " and ".join(v.aval.str_short() for v in values)
        raise TreeStructureError(f"lower and upper of fori_loop must be scalars, not {shapes}")
    dtype, weak = dtypes.promote(types)
    start, stop = (convert(v, dtype, weak) for v in values)
    return start, stop


def _while_between(start: Value, stop: Value, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """The loop as a while loop on (i, stop, carry)."""
    carry, _ = arguments_of(body_fun, init_val, before=1)
    treedef = tree.structure((((start, stop, init_val),), {}))
    described = Body("fori_loop", body_fun, tree.structure(init_val), position=1, first=2)

    def condition(state: Any) -> Any:
        return ops.compare(state[0], "LT", state[1])

    def body(state: Any) -> Any:
        i, end, carry = state
        new = body_fun(i, carry)
        described.check_structure(tree.structure(new))
        return ops.add(i, scalar_like(i, 1)), end, new

    body.__name__ = getattr(body_fun, "__name__", "body")
    state = [start, stop, *carry]

    def trace_body(avals: list[ShapedArray]) -> Traced:
        return trace_function(body, treedef, avals)

    leaves = run_loop(described, condition, trace_body, state, treedef, (body_fun,))
    assert leaves is not None, "the condition writes no references"
    return tree.unflatten(described.tree, leaves[2:])


def _scan_from(start: Value, length: int, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """The loop as a scan with a counter that has the derivative of its start."""

    def step(state: Any, _: None) -> Any:
        i, carry = state
        return (ops.add(i, scalar_like(i, 1)), body_fun(i, carry)), None

    (_, last), _ = scan(step, (start, init_val), None, length)
    return last


def _counted_scan(start: Array, length: int, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """The loop as a scan over no arrays, with the scan's index as its counter."""
    carry, _ = arguments_of(body_fun, init_val, before=1)
    described = Body("fori_loop", body_fun, tree.structure(init_val), position=1)
    first, counter = start.item(), start.aval

    def body(carry: Any, index: Value) -> Any:
        i = convert(index, counter.dtype, counter.weak_type)
        return body_fun(ops.add(i, scalar_like(i, first)) if first else i, carry)

    body.__name__ = getattr(body_fun, "__name__", "body")
    treedef = tree.structure(((init_val, 0), {}))

    def trace_body(avals: list[ShapedArray]) -> Traced:
        traced = trace_function(body, treedef, [*avals, INDEX])
        described.check_structure(traced.out_tree)
        return traced

    def settle() -> Traced:
        return described.settle(carry, trace_body)[1]

    key = ("fori_loop", treedef, first, counter)
    traced, leaves = _bind_scan(body_fun, key, settle, carry, [], length, False, is_counted=True)
    return tree.unflatten(traced.out_tree, leaves)
