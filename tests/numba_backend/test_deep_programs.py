"""Programs of many equal layers: what is done once for all of them, and what is left of a compilation."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hloom.hlo import Opcode, Shape, parse
from hloom.hlo.builder import make_computation, make_constant, make_instruction, make_module, make_parameter
from hloom.hlo.ops.movement import BroadcastAttributes
from hloom.hlo.passes.layout.buffer_layouts import BufferLayouts
from hloom.hlo.passes.manager import FixedPoint, Pipeline
from hloom.hlo.passes.simplify.dead_code_elimination import DeadCodeElimination
from hloom.hlo.targets import target_named
from hloom.numba_backend import compiling, stored_programs
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.machine import this_machine
from hloom.numba_backend.policy.products import product_kernel

import hloom
import hloom.numpy as jnp


def _loss(w: Any, x: Any) -> Any:
    for k in range(3):
        x = jnp.tanh(x @ w[k])
    return (x * x).mean()


def _arguments() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((3, 20, 20)).astype(np.float32), rng.standard_normal((30, 20)).astype(np.float32)


@contextmanager
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HLOOM_VERIFY_PASSES", "HLOOM_CHECK_RULES", "HLOOM_DUMP_TO"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(stored_programs, "key_of", lambda *_: None)


@pytest.mark.usefixtures("usual")
def test_the_details_of_a_large_program_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the collector: nothing of them is in a circle. They are made again for a user who asks."""
    module = hloom.jit(hloom.grad(_loss)).lower(*_arguments()).module
    expected = NumbaCompiler().compile(module)
    made: list[weakref.ref[Any]] = []
    staged = compiling._staged

    def noting(*given: Any, **options: Any) -> Any:
        details, data = staged(*given, **options)
        made.extend([weakref.ref(details), weakref.ref(details._assignment)])
        return details, data

    monkeypatch.setattr(compiling, "LARGE", 0)
    monkeypatch.setattr(compiling, "_staged", noting)
    with _no_collector():
        program = NumbaCompiler().compile(module)
        assert [ref() for ref in made] == [None, None]
    arguments = _arguments()
    for a, b in zip(program.execute(arguments), expected.execute(arguments), strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(made) == 2
    assert program.module.to_text() == expected.module.to_text()
    assert program.kernels() == expected.kernels()
    assert program.memory_analysis().text == expected.memory_analysis().text
    assert program._program.to_text() == expected._program.to_text()
    assert [record.name for record in program.passes()] == [record.name for record in expected.passes()]
    assert len(made) == 4  # once for all questions


@pytest.mark.usefixtures("usual")
def test_the_details_of_a_small_program_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    program = NumbaCompiler().compile(hloom.jit(_loss).lower(*_arguments()).module)
    monkeypatch.setattr(compiling, "_staged", None)
    assert "tanh" in program.module.to_text()


def _dot(rows: int, name: str) -> Any:
    text = f"""HloModule m

ENTRY e {{
  {name} = f32[{rows},40]{{1,0}} parameter(0)
  b = f32[40,50]{{1,0}} parameter(1)
  ROOT c = f32[{rows},50]{{1,0}} dot({name}, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""
    return parse(text).entry.root


def test_equal_products_have_one_kernel() -> None:
    machine = replace(this_machine(), cores=2)
    first = product_kernel(_dot(30, "a"), machine)
    assert first is not None
    assert product_kernel(_dot(30, "x"), machine) is first
    other = product_kernel(_dot(31, "a"), machine)
    assert other is not None
    assert other.parameters != first.parameters


def test_arrays_in_the_layouts_of_the_target_are_left_alone() -> None:
    """Also those with equal shapes that are different objects."""
    shapes = [Shape(s.element_type, s.dimensions, s.layout) for s in [Shape.parse("f32[40,30]")] * 3]
    x = make_parameter(0, shapes[0])
    y = make_instruction(Opcode.BROADCAST, [make_constant(np.float32(2))], BroadcastAttributes(()), shapes[1])
    root = make_instruction(Opcode.ADD, [x, y], shape=shapes[2])
    module = make_module("m", make_computation("main", root, [x]))
    assert BufferLayouts(target_named("cpu"))(module) is module
    assert BufferLayouts(target_named("tpu"))(module) is not module


def test_a_pass_that_found_nothing_is_not_run_again() -> None:
    module = parse("HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n")
    each = DeadCodeElimination()
    _, records = Pipeline("test", (FixedPoint((each,)), each, FixedPoint((DeadCodeElimination(),)))).run(module)
    assert [record.name for record in records] == ["dce"]
