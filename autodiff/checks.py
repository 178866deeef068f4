"""CheckTrace: a function that runs on after an error, and reports it. The core of `checkify`.

Values are the parent trace's. Beside them the trace carries an error: a code, 0 while all is well, and the data for the
messages. Each operation that is checked replaces the code where it finds a fault and none was found before. Loops and
branches carry the error of their bodies with their state.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from ..hlo.builder import make_computation, make_instruction, make_parameter, make_tuple
from ..hlo.ir import HloComputation, HloModule
from ..hlo.opcode import Opcode
from ..hlo.ops import Trait, has_trait
from ..hlo.ops.custom_call import CustomCallAttributes
from ..hlo.shape import Shape
from ..hlo.support.records import dataclass
from ..tracer import dtypes
from ..tracer.arrays.overlay import overlaid_all
from ..tracer.aval import ShapedArray
from ..tracer.checks.error_state import set_error_if
from ..tracer.control_flow.scan import SCAN
from ..tracer.core import (
    Call,
    Primitive,
    Trace,
    Value,
    bind,
    bind_call,
    bind_conditional,
    bind_while,
    current_trace,
    eval_computation,
    run_meaning,
    set_current_trace,
)
from ..tracer.ops import (
    compare,
    full_like,
    reduce_with,
    scalar,
    scalar_like,
    select,
    zeros,
)
from ..tracer.recording import (
    closed_computation,
    returns_element,
    takes_one_tuple,
    trace_to_computation,
    with_computation,
)
from ..tracer.settings.context import current_context
from ..tracer.source import user_line
from ..tracer.traced import jit_call
from ..tracer.trees import tree
from .batches import Axis, all_with_batch, first_where
from .jvp import FlatFunction, parameter_avals
from .operations import jax_name
from .rules.bounds import BOUNDS, Bound
from .rules.scan import body_avals, make_loop, rule_of

_BOOL = np.dtype(np.bool_)


class JaxRuntimeError(ValueError):
    """A check failed: the error of `Error.throw`, and of `check` where it runs at once. The message begins with the
    text of the check: programs compare it."""

    is_complete = True  # for the boundary of the function that raises it


@dataclass(frozen=True, slots=True)
class Site:
    """One way in which a program can fail. Equal ones share a code."""

    kind: str
    """"nan", "div", "oob" or "user"."""
    message: str
    """With fields for the payload, as `str.format` has them."""
    structure: Any
    """The tree of (positional, keyword) payload."""
    avals: tuple[ShapedArray, ...]
    line: str
    """The user's."""


class Checks:
    """The kinds of faults that one function is checked for, and all that it may find. The code of `sites[k]` is k +
    1."""

    def __init__(self, kinds: frozenset[str]) -> None:
        self.kinds = kinds
        self.sites: list[Site] = []
        self.found: dict[HloComputation, tuple[int, ...]] = {}
        """The numbers of the sites in computations that were looked through."""

    def number(self, site: Site) -> int:
        """The number of a site, a new one if there was none."""
        if site not in self.sites:
            self.sites.append(site)
        return self.sites.index(site)


Payload = tuple[Value, ...]
"""Of keys their storage."""


class CheckTrace(Trace):
    """Runs each op under the parent trace, and checks its operands and results."""

    parent: Trace
    activity = " while it is checked by checkify"

    def __init__(self, parent: Trace, checks: Checks, only_looks: bool = False) -> None:
        self.parent = parent
        self.checks = checks
        self.only_looks = only_looks
        """Only the sites are needed: primitives that run computations need no error as their operand."""
        self.code: Value = scalar(0, dtypes.int32)
        self.payloads: dict[int, Payload] = {}
        """By the number of the site, of those that this trace has seen."""

    def process(
        self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape
    ) -> Value | list[Value]:
        with set_current_trace(self.parent):
            if self.only_looks and opcode in (Opcode.WHILE, Opcode.CONDITIONAL):
                self._look_through(attributes.called_computations())
                return self.parent.process(opcode, operands, attributes, shape)
            if opcode is Opcode.WHILE:
                return self._while(attributes.condition, attributes.body, operands)
            if opcode is Opcode.CONDITIONAL:
                return self._conditional(attributes.branch_computations, operands)
            result = self.parent.process(opcode, operands, attributes, shape)
            self._check_op(opcode, operands, attributes, result)
        return result

    def process_call(self, call: Call, operands: tuple[Value, ...]) -> list[Value]:
        if call.primitive is CHECK:
            site: Site = call.params
            with set_current_trace(self.parent):
                if site.kind in self.checks.kinds:
                    self.fail(site, _not(operands[0]), operands[1:])
                else:  # an index, which an enclosing checkify checks
                    self.parent.process_call(call, operands)
            return []
        if call.primitive.is_transparent:
            return run_meaning(call, operands)
        if not isinstance(call.meaning, HloComputation):
            with set_current_trace(self):
                call, captured = with_computation(call, operands)
                operands = (*operands, *captured)
        with set_current_trace(self.parent):
            if self.only_looks:
                self._look_through((call.computation,))
            if self.only_looks or not self._found_in(call.computation):
                return self.parent.process_call(call, operands)
            if call.primitive is SCAN:
                return self._scan(call, operands)
            checked = self._checked(call.computation)
            given = [*operands, *self._state(checked.numbers), *checked.captured]
            returned = bind_call(jit_call(checked.computation, call.label), given)
            return self._take(returned, checked.numbers)

    # --- the error

    def fail(self, site: Site, failed: Value, payload: Sequence[Value]) -> None:
        """Where `failed` (pred[]) is true and there is no error yet, this is the error."""
        number = self.checks.number(site)
        is_first = _and(compare(self.code, "EQ", scalar_like(self.code, 0)), failed)
        self.code = select(is_first, scalar(number + 1, dtypes.int32), self.code)
        before = self.payloads.get(number) or tuple([zeros(a.storage) for a in site.avals])
        self.payloads[number] = tuple([select(is_first, new, old) for new, old in zip(payload, before, strict=True)])

    def _state(self, numbers: Sequence[int]) -> list[Value]:
        """The code, and the payloads of some sites: the operands of a computation that may find errors at these
        sites."""
        found = [self.code]
        for number in numbers:
            avals = self.checks.sites[number].avals
            found += self.payloads.get(number) or [zeros(a.storage) for a in avals]
        return found

    def _state_avals(self, numbers: Sequence[int]) -> list[ShapedArray]:
        return [ShapedArray((), dtypes.int32), *(a.storage for n in numbers for a in self.checks.sites[n].avals)]

    def _set_state(self, values: Sequence[Value], numbers: Sequence[int]) -> None:
        rest = iter(values)
        self.code = next(rest)
        for number in numbers:
            self.payloads[number] = tuple([next(rest) for _ in self.checks.sites[number].avals])

    def _take(self, returned: Sequence[Value], numbers: Sequence[int]) -> list[Value]:
        """The results of a checked computation; its last results are the new error."""
        count = len(self._state_avals(numbers))
        self._set_state(returned[len(returned) - count :], numbers)
        return list(returned[: len(returned) - count])

    # --- computations

    def _look_through(self, computations: Sequence[HloComputation]) -> None:
        for computation in computations:
            for number in self._found_in(computation):
                self.payloads.setdefault(number, ())

    def _found_in(self, computation: HloComputation) -> tuple[int, ...]:
        """The numbers of the sites in a computation."""
        found = self.checks.found.get(computation)
        if found is None:
            seen: dict[int, Payload] = {}

            def run(values: list[Value]) -> list[Value]:
                inner = CheckTrace(current_trace(), self.checks, only_looks=True)
                with set_current_trace(inner):
                    results = eval_computation(computation, values)
                seen.update(inner.payloads)
                return results

            trace_to_computation(run, parameter_avals(computation), computation.name)
            found = self.checks.found[computation] = tuple(seen)
        return found

    def _run(self, computation: HloComputation, values: list[Value], state: Sequence[Value], numbers: Sequence[int]
             ) -> tuple[list[Value], list[Value]]:  # fmt: skip
        """The results of a computation, checked under the current trace, and the error after it."""
        inner = CheckTrace(current_trace(), self.checks)
        inner._set_state(state, numbers)
        with set_current_trace(inner):
            results = eval_computation(computation, values)
        return results, inner._state(numbers)

    def _with_error(self, computation: HloComputation, numbers: Sequence[int]) -> FlatFunction:
        """A computation as a function that takes an error after its arguments, and returns one after its results."""
        count = len(parameter_avals(computation))

        def run(values: list[Value]) -> list[Value]:
            results, state = self._run(computation, values[:count], values[count:], numbers)
            return [*results, *state]

        return run

    def _checked(self, computation: HloComputation) -> _Checked:
        """`computation`, which takes and returns an error too."""
        numbers = self._found_in(computation)
        avals = parameter_avals(computation)
        run = self._with_error(computation, numbers)
        traced = trace_to_computation(run, [*avals, *self._state_avals(numbers)], f"checked_{computation.name}")
        return _Checked(traced.computation, numbers, tuple(traced.captured))

    def _while(self, condition: HloComputation, body: HloComputation, operands: Sequence[Value]) -> list[Value]:
        """The condition is checked on the first state, and on each new one in the body."""
        in_condition = self._found_in(condition)
        numbers = tuple(dict.fromkeys([*self._found_in(body), *in_condition]))
        if not numbers:
            return bind_while(condition, body, operands)
        avals = parameter_avals(body)
        count = len(avals)
        state = self._state(numbers)
        if in_condition:
            _, state = self._run(condition, list(operands), state, numbers)

        def run_body(values: list[Value]) -> list[Value]:
            new, after = self._run(body, values[:count], values[count:], numbers)
            if in_condition:
                _, after = self._run(condition, new, after, numbers)
            return [*new, *after]

        def run_condition(values: list[Value]) -> list[Value]:
            return self._run(condition, values[:count], values[count:], numbers)[0]

        every = [*avals, *self._state_avals(numbers)]
        loop = takes_one_tuple(closed_computation(run_body, every, body.name))
        decide = takes_one_tuple(returns_element(closed_computation(run_condition, every, condition.name)))
        returned = bind_while(decide, loop, [*operands, *state])
        return self._take(returned, numbers)

    def _conditional(self, branches: Sequence[HloComputation], operands: Sequence[Value]) -> list[Value]:
        index, *inputs = operands
        numbers = tuple(dict.fromkeys([n for b in branches for n in self._found_in(b)]))
        if not numbers:
            return bind_conditional(branches, index, inputs)
        avals = [*(v.aval for v in inputs), *self._state_avals(numbers)]
        made = [takes_one_tuple(closed_computation(self._with_error(b, numbers), avals, b.name)) for b in branches]
        return self._take(bind_conditional(made, index, [*inputs, *self._state(numbers)]), numbers)

    def _scan(self, call: Call, operands: Sequence[Value]) -> list[Value]:
        """The error is a part of the carry."""
        rule = rule_of(call)
        numbers = self._found_in(rule.body)
        consts, carry, slices = body_avals(rule)
        state = self._state(numbers)

        def body(c: list[Value], k: list[Value], x: list[Value], index: Value) -> tuple[list[Value], list[Value]]:
            given = [*c, *k[: len(carry)], *x, index]
            results, after = self._run(rule.body, given, k[len(carry) :], numbers)
            return [*results[: len(carry)], *after], results[len(carry) :]

        loop = make_loop(body, consts, [*carry, *(v.aval for v in state)], slices, rule, rule.reverse)
        split = len(consts) + len(carry)
        given = [*operands[: len(consts)], *loop.captured, *operands[len(consts) : split], *state, *operands[split:]]
        returned = loop.bind(given)
        end = len(carry) + len(state)
        self._set_state(returned[len(carry) : end], numbers)
        return [*returned[: len(carry)], *returned[end:]]

    # --- ops

    def _check_op(self, opcode: Opcode, operands: Sequence[Value], attributes: Any, result: Any) -> None:
        if "div" in self.checks.kinds and opcode in (Opcode.DIVIDE, Opcode.REMAINDER):
            divisor = operands[1]
            self._fail_if_any("div", "division by zero", compare(divisor, "EQ", full_like(divisor, 0)))
        if "oob" in self.checks.kinds and opcode in BOUNDS:
            for site, failed, index in _first_outside(BOUNDS[opcode](operands, attributes)):
                self.fail(site, failed, [index])
        if "nan" in self.checks.kinds and not has_trait(opcode, Trait.MOVEMENT) and opcode is not Opcode.OPT_BARRIER:
            for value in result if isinstance(result, list) else [result]:
                if dtypes.is_inexact(value.aval.dtype):
                    message = f"nan generated by primitive: {jax_name(opcode, attributes)}."
                    self._fail_if_any("nan", message, compare(value, "NE", value))

    def _fail_if_any(self, kind: str, message: str, failed: Value) -> None:
        self.fail(Site(kind, message, None, (), user_line() or ""), _any(failed), ())


@dataclass(frozen=True, slots=True)
class _Checked:
    computation: HloComputation
    numbers: tuple[int, ...]
    captured: tuple[Value, ...]


_ONE = tree.structure(((0,), {}))
"""The payload of a message with one number."""


# --- predicates


def _any(flags: Value) -> Value:
    return reduce_with(Opcode.OR, flags, scalar(False, _BOOL), tuple(range(flags.aval.ndim)))


def _not(flag: Value) -> Value:
    return bind(Opcode.NOT, (flag,))


def _and(x: Value, y: Value) -> Value:
    return bind(Opcode.AND, (x, y))


def _or(x: Value, y: Value) -> Value:
    return bind(Opcode.OR, (x, y))


# --- checks of users


def _evaluate_check(call: Call, arrays: Sequence[Any]) -> list[Any]:
    site: Site = call.params
    if not bool(arrays[0]):
        raise JaxRuntimeError(message_of(site, overlaid_all(arrays[1:], site.avals)))
    return []


CHECK = Primitive("check", evaluate=_evaluate_check)
"""The parameters of a call: a `Site`. Its operands: the predicate that must be true, and the payload."""


def bind_check(site: Site, holds: Value, payload: Sequence[Value]) -> None:
    """Fail at `site` unless `holds`."""
    bind_call(Call(CHECK, _meaning(site.avals), site, "check"), [holds, *payload])


def refuse_checks(module: HloModule) -> None:
    """ValueError if a program that is lowered has checks that no `checkify` has taken."""
    for computation in module.computations:
        for i in computation.instructions:
            composite = i.attributes.composite if i.opcode is Opcode.CALL else None
            call = composite.rule if composite is not None else None
            if isinstance(call, Call) and call.primitive is CHECK:
                where = f"{i.metadata.source_file}:{i.metadata.source_line}" if i.metadata is not None else "<unknown>"
                raise ValueError(
                    "Cannot abstractly evaluate a checkify.check which was not functionalized: it is in a function "
                    f"that is traced (by jit, scan, ...).\n  at {where}\n"
                    "  Apply checkify.checkify to the function, inside or outside of jit."
                )


def check_indices(shape: tuple[int, ...], axes: Sequence[int], indices: Sequence[Value]) -> None:
    """Look whether indices, which count from 0 and have one shape, are inside of these axes of an array."""
    bounds = [Bound(shape, axis, index, max(shape[axis], 1) - 1) for axis, index in zip(axes, indices, strict=True)]
    context = current_context()
    for axis, (site, failed, index) in zip(axes, _first_outside(bounds), strict=True):
        if context.error_checking_behavior_oob == "raise":
            set_error_if(failed, f"Out of bounds indexing for axis {axis} of array of shape {shape}")
        if "oob" in context.checks:
            bind_check(site, _not(failed), [index])


def _first_outside(bounds: Sequence[Bound]) -> list[tuple[Site, Value, Value]]:
    """For each bound its site, whether it is broken, and the index: by the first element in which one of them is."""
    if not bounds:
        return []
    positions = [b.position for b in bounds]
    outside = [
        _or(compare(p, "LT", full_like(p, 0)), compare(p, "GT", full_like(p, b.last)))
        for p, b in zip(positions, bounds, strict=True)
    ]
    found = first_where(reduce(_or, outside), [*outside, *positions])
    line = user_line() or ""
    sites = [Site("oob", _out_of_bounds(b), _ONE, (ShapedArray((), b.position.aval.dtype),), line) for b in bounds]
    return list(zip(sites, found[: len(bounds)], found[len(bounds) :], strict=True))


def _out_of_bounds(bound: Bound) -> str:
    shape, axis = bound.shape, bound.axis
    what = f"out-of-bounds indexing for array of shape {shape}"
    return f"{what}: index {{}} is out of bounds for axis {axis} with size {shape[axis]}. "


@lru_cache(maxsize=256)
def _meaning(payload: tuple[ShapedArray, ...]) -> HloComputation:
    """A call that acts, so that nothing removes it; `CheckTrace` replaces it."""
    parameters = [make_parameter(0, ShapedArray((), np.bool_).hlo)]
    parameters += [make_parameter(k + 1, a.storage.hlo) for k, a in enumerate(payload)]
    attributes = CustomCallAttributes(custom_call_target="hloom.check", has_side_effect=True)
    act = make_instruction(Opcode.CUSTOM_CALL, parameters, attributes, Shape.tuple([]))
    return make_computation("check", make_tuple([]), parameters, [act])


@CHECK.def_jvp
def _check_jvp(call: Call, primals: Sequence[Value], tangents: Sequence[Any]) -> tuple[list[Value], list[Any]]:
    return bind_call(call, primals), []


@CHECK.def_batch
def _check_batch(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
) -> tuple[list[Value], list[bool]]:
    """The check of all elements, with the payload of the first one that fails."""
    holds, *payload = all_with_batch(axis, operands, batched)
    together = reduce_with(Opcode.AND, holds, scalar(True, _BOOL), (0,))
    return bind_call(call, [together, *first_where(_not(holds), payload)]), []


def message_of(site: Site, payload: Sequence[Any]) -> str:
    """The message of an error, with the numbers filled in."""
    if site.structure is None:
        return site.message
    args, kwargs = tree.unflatten(site.structure, list(payload))
    return site.message.format(*args, **kwargs) + (" (`check` failed)" if site.kind == "user" else "")
