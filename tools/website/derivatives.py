"""The derivative of an operation, from the tables of `autodiff/rules/`: the rule forwards, its transpose, and what they
trace to.

A rule is shown by its docstring and by the jaxpr of the derivative of a test case, which is made as a user's is: by
`jvp` and `vjp`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from hloom.autodiff.linearize import LINEARIZE
from hloom.autodiff.rules.tables import ADD_TO, JVP, TRANSPOSE, ZERO_DERIVATIVE, load_rules
from hloom.hlo import HloModule, Opcode
from hloom.tracer.core import eval_computation

import hloom
import hloom.numpy as jnp
from hloom.backend_check.op_table import OpCase, build_module, make_inputs

from .docstrings import markdown

_LINES = 40
"""The longest program that a page shows."""
_ELEMENTS = 24
"""Elements of the operands and the result of a case that says most."""
_TAKE_A_TUPLE = frozenset({Opcode.CONDITIONAL, Opcode.WHILE})
"""Traced ones have computations of one tuple, which the test cases do not have."""


def section(opcode: Opcode, cases: Sequence[OpCase]) -> str:
    """The part of a page about derivatives. `cases`: the opcode's test cases."""
    return "## Derivative\n\n" + "\n\n".join(_parts(opcode, cases))


def load() -> None:
    """Fill the tables of rules."""
    hloom.grad  # noqa: B018  # says where the rules are
    load_rules()


def _parts(opcode: Opcode, cases: Sequence[OpCase]) -> Iterator[str]:
    load()
    if opcode in ZERO_DERIVATIVE:
        yield "Zero: the result is an integer, a boolean, a constant or a step, and does not move with the operands."
        return
    if opcode not in JVP and opcode not in TRANSPOSE:
        yield f"Not differentiable: {markdown(JVP.reason(opcode) or '')}."
        return
    yield f"- forwards: {_rule(JVP, opcode)}"
    if opcode in LINEARIZE:
        yield f"- in reverse mode: {_words(LINEARIZE[opcode])}"
    yield f"- backwards: {_rule(TRANSPOSE, opcode)}"
    if opcode in ADD_TO:
        yield f"- backwards, added to another cotangent: {_words(ADD_TO[opcode])}"
    if opcode in JVP and opcode not in _TAKE_A_TUPLE:
        yield from programs(cases)


def _rule(table: Any, opcode: Opcode) -> str:
    return _words(table[opcode]) if opcode in table else f"no rule: {markdown(table.reason(opcode) or '')}."


def _words(rule: Any) -> str:
    """The text of a rule, and the file that it is in."""
    file = _function(rule).__module__.removeprefix("hloom.").replace(".", "/")
    return f"{' '.join(markdown(text_of(rule)).split())} (`{file}.py`)"


def text_of(rule: Any) -> str:
    return _function(rule).__doc__ or ""


def _function(rule: Any) -> Any:
    return rule.func if isinstance(rule, partial) else rule


def programs(cases: Sequence[OpCase]) -> Iterator[str]:
    """The jaxprs of the derivative of a small case with one: forwards and, where it is another, backwards."""
    found = sorted((made for case in cases if (made := _differentiable(case))), key=lambda made: made[0])
    for _, case, module in found[:1]:
        forwards, backwards = derivatives(module, make_inputs(case, seed=0))
        shown = [("Forwards", forwards)] + [("Backwards", backwards)] * (backwards != forwards)
        for direction, text in shown:
            if text.count("\n") < _LINES:
                yield f"{direction}, of `{case.id}`, as a jaxpr:\n\n```\n{text}\n```"


def _differentiable(case: OpCase) -> tuple[int, OpCase, HloModule] | None:
    """A case with operands and a result that have tangents, and its size; ordinary floats come first."""
    module = build_module(case)
    entry = module.entry
    inner = [i for i in entry.instructions if i is not entry.root]
    if any(i.shape.is_tuple for i in inner) or module.replica_count * module.num_partitions > 1:
        return None
    operands, results = ([leaf.element_type for leaf in shapes] for shapes in _leaves(entry))
    if not any(e.is_inexact for e in operands) or not any(e.is_inexact for e in results):
        return None
    sizes = [leaf.num_elements for shapes in _leaves(entry) for leaf in shapes]
    plain = all(e.value in ("f32", "s32", "pred") for e in (*operands, *results))
    return abs(sum(sizes) - _ELEMENTS) + 100_000 * (not plain) + 1_000_000 * (not all(sizes)), case, module


def _leaves(entry: Any) -> tuple[list[Any], list[Any]]:
    return [leaf for p in entry.parameters for leaf in p.shape.leaves()], list(entry.root.shape.leaves())


def derivatives(module: HloModule, arguments: Sequence[Any]) -> tuple[str, str]:
    """The jaxprs of the jvp and of the vjp of a module by all arguments that can move."""
    values = [jnp.asarray(a) for a in arguments]
    moving = [k for k, x in enumerate(values) if jnp.issubdtype(x.dtype, np.inexact)]

    def run(*moved: Any) -> list[Any]:
        given = dict(zip(moving, moved, strict=True))
        results = eval_computation(module.entry, [given.get(k, x) for k, x in enumerate(values)])
        return [r for r in results if jnp.issubdtype(r.dtype, np.inexact)]

    def forwards(primals: Any, tangents: Any) -> Any:
        return hloom.jvp(run, tuple(primals), tuple(tangents))[1]

    def backwards(primals: Any, cotangents: Any) -> Any:
        return hloom.vjp(run, *primals)[1](cotangents)

    primals = [values[k] for k in moving]
    cotangents = [jnp.zeros(r.shape, r.dtype) for r in hloom.eval_shape(run, *primals)]
    return tuple(str(hloom.make_jaxpr(f)(primals, t)) for f, t in ((forwards, primals), (backwards, cotangents)))  # type: ignore[return-value]
