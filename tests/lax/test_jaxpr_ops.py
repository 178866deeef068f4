"""Every HLO op as an equation, and back: what the equation's primitive binds is the op."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hloom.hlo.errors import HloError, UnsupportedError
from hloom.hlo.evaluator import evaluate
from hloom.hlo.opcode import Opcode

import hloom
import hloom.lax
from hloom.backend_check.op_table import CASES, OpCase, build_module, check_results, make_inputs
from hloom.jaxpr.evaluate import eval_jaxpr
from hloom.jaxpr.rules import SHOWN
from hloom.jaxpr.view import Views
from support.jaxpr_programs import arguments, named

PROGRAMS = named(hloom)
ATOMS = {Opcode.CONSTANT, Opcode.GET_TUPLE_ELEMENT, Opcode.PARAMETER, Opcode.TUPLE}
SHOWABLE = [c for c in CASES if c.opcode in SHOWN or c.opcode in ATOMS]


def first_of_each(most: int) -> list[OpCase]:
    """Of each opcode the first few cases."""
    counts: Counter[Opcode] = Counter()
    found = []
    for case in SHOWABLE:
        counts[case.opcode] += 1
        if counts[case.opcode] <= most:
            found.append(case)
    return found


def check(case: OpCase) -> None:
    module, inputs = build_module(case), make_inputs(case)
    try:
        closed = Views().of(module.entry)
    except UnsupportedError as error:  # tuples in tuples, tokens: no traced function has them
        assert "no traced function" in str(error)
        return
    str(closed)
    with hloom.enable_x64(True):
        found = eval_jaxpr(closed.jaxpr, closed.consts, *inputs)
    check_results(case, found, list(evaluate(module, *inputs)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", first_of_each(4), ids=lambda c: c.id)
def test_an_op_evaluates_as_its_equation(case: OpCase) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("opcode", sorted({case.opcode.value for case in SHOWABLE}))
def test_all_cases_evaluate_as_their_equations(opcode: str) -> None:
    """One test an opcode: there is less to collect."""
    failures = []
    for case in SHOWABLE:
        if case.opcode.value == opcode:
            try:
                check(case)
            except (AssertionError, HloError) as error:
                failures.append(f"{case.id}: {error}")
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_jaxpr_traced_again_is_the_same(name: str) -> None:
    fun = PROGRAMS[name]
    types = arguments(fun, "hloom")
    closed = hloom.make_jaxpr(fun)(*types)
    again = hloom.make_jaxpr(hloom.extend.core.jaxpr_as_fun(closed))(*types)
    assert str(again) == str(closed)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_jaxpr_computes_what_the_function_computes(name: str) -> None:
    fun = PROGRAMS[name]
    rng = np.random.default_rng(3)
    inputs = []
    for t in arguments(fun, "hloom"):
        values = np.abs(rng.normal(size=t.shape)) + 0.3
        inputs.append(np.asarray(values * (1 if t.dtype.kind in "fc" else 2)).astype(t.dtype))
    closed = hloom.make_jaxpr(fun)(*inputs)
    wanted = hloom.tree.leaves(hloom.jit(fun)(*inputs))
    as_fun = hloom.extend.core.jaxpr_as_fun(closed)
    for found in (as_fun(*inputs), hloom.jit(as_fun)(*inputs)):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-6)
            assert a.dtype == b.dtype and a.shape == b.shape
