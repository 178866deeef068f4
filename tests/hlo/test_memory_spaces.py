"""Memory space assignment: what goes into fast memory, that it fits, that text and numbers do not change.

Every case runs on real bytes and through the symbolic checker, which knows the spaces and their limits.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from hloom.hlo.analyses.trip_count import known_trip_count
from hloom.hlo.backend import optimize
from hloom.hlo.buffers.assignment import Allocation, AllocationKind, BufferAssignment, assign_buffers
from hloom.hlo.buffers.checker import verify_buffers
from hloom.hlo.buffers.heap import Heap, Request, peak
from hloom.hlo.ir import HloComputation, HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.fuse.flatten_call_graph import FlattenCallGraph
from hloom.hlo.passes.fuse.memory_scheduler import MemoryScheduler
from hloom.hlo.passes.layout.memory_space_assignment import MemorySpaceAssignment
from hloom.hlo.passes.manager import PassOptions
from hloom.numba_backend.compiler import NumbaCompiler

import hloom
import hloom.numpy as jnp
from hloom import hlo
from support.byte_machine import ByteMachine, can_share
from support.comparing import assert_same_arrays
from support.guarded import GuardedProgram
from support.random_modules import random_arguments, random_module

BUDGETS = (0, 64, 512, 4096, 2**40)


def vmem(size: int) -> hlo.MemorySpace:
    return hlo.MemorySpace(1, "VMEM", size)


def placed(module: HloModule, size: int) -> tuple[HloModule, BufferAssignment]:
    """The module with its memory spaces, and its buffers, checked in every way."""
    module = MemoryScheduler()(FlattenCallGraph()(module))
    spaced = MemorySpaceAssignment(vmem(size), can_share)(module)
    hlo.verify(spaced)
    check_layouts_agree(spaced)
    again = hlo.parse(spaced.to_text())
    assert again.to_text() == spaced.to_text()
    check_layouts_agree(again)
    assignment = assign_buffers(spaced, can_share, fast_memory=vmem(size))
    verify_buffers(assignment, can_share)
    report = assignment.report()
    (fast,) = [s for s in report.spaces if s.number == 1]
    assert fast.arena_peak <= fast.arena_bytes <= size
    arguments = random_arguments(module, 1)
    assert_same_arrays(hlo.evaluate(module, *arguments), ByteMachine(assignment).run(arguments), rtol=0)
    return spaced, assignment


def check_layouts_agree(module: HloModule) -> None:
    """Wherever a value passes without code, both ends have the same layouts, memory spaces included.

    A fusion's root, or each element of its root, is stored, and what it stores has no memory: the loop of a native
    loop, whose elements these are.
    """

    def same(a: hlo.Shape, b: hlo.Shape, where: HloInstruction) -> None:
        assert a == b, f"{a.to_text()} and {b.to_text()} at {where.name} in {module.to_text()}"

    def callee(called: HloComputation, operands: list[hlo.Shape], result: hlo.Shape, where: HloInstruction) -> None:
        for parameter, shape in zip(called.parameters, operands, strict=True):
            same(parameter.shape, shape, where)
        same(called.root.shape, result, where)

    roots = [i.called_computations()[0].root for i in module.instructions() if i.opcode is Opcode.FUSION]
    stored = {o for root in roots for o in (root, *(root.operands if root.opcode is Opcode.TUPLE else ()))}
    for i in module.instructions():
        shapes = [o.shape for o in i.operands]
        if i.opcode is Opcode.WHILE:
            same(i.shape, shapes[0], i)
            same(i.attributes.condition.parameters[0].shape, i.shape, i)
            callee(i.attributes.body, [i.shape], i.shape, i)
        elif i.opcode is Opcode.CONDITIONAL:
            for branch, shape in zip(i.attributes.branch_computations, shapes[1:], strict=True):
                callee(branch, [shape], i.shape, i)
        elif i.opcode in (Opcode.CALL, Opcode.FUSION):
            callee(i.called_computations()[0], shapes, i.shape, i)
        elif i.opcode is Opcode.GET_TUPLE_ELEMENT and i not in stored:
            same(shapes[0].elements[i.attributes.index], i.shape, i)


def shape_of(module: HloModule, name: str) -> str:
    return next(i.shape.to_text() for i in module.instructions() if i.name == name)


def reason_of(assignment: BufferAssignment, name: str) -> str:
    return next(r.reason for r in assignment.rows if name in r.holders)


CHAIN = """HloModule m, is_scheduled=true
ENTRY e {
  x = f32[16] parameter(0)
  a = f32[16] reverse(x), dimensions={0}
  b = f32[16] reverse(a), dimensions={0}
  c = f32[16] add(a, b)
  d = f32[16] reverse(c), dimensions={0}
  ROOT r = f32[16] reverse(d), dimensions={0}
}"""


def test_what_fits_goes_into_fast_memory_and_arguments_and_results_stay() -> None:
    module, assignment = placed(hlo.parse(CHAIN), 1024)
    for name in "abcd":
        assert shape_of(module, name) == "f32[16]{0:S(1)}"
    assert shape_of(module, "x") == shape_of(module, "r") == "f32[16]{0}"
    assert assignment.arenas == (Allocation(AllocationKind.ARENA, 0, 0), Allocation(AllocationKind.ARENA, 1, 128))
    assert assignment.arena_size == 128 and assignment.arena_offset(assignment.arenas[1]) == 0
    assert reason_of(assignment, "x") == "argument 0" and reason_of(assignment, "r") == "result 0"


def test_nothing_goes_into_no_memory() -> None:
    module = hlo.parse(CHAIN)
    assert MemorySpaceAssignment(vmem(0), can_share)(module) is module
    _, assignment = placed(module, 0)
    assert reason_of(assignment, "a") == "too large"


def test_a_second_choice_replaces_the_first() -> None:
    """As if the first had never been: with less room, and with none."""
    for text in (CHAIN, LOOP, BRANCHES, FUSIONS):
        module = hlo.parse(text)
        everything = MemorySpaceAssignment(vmem(4096), can_share)(module)
        for size in (0, 64, 128, 4096):
            again = MemorySpaceAssignment(vmem(size), can_share)(everything)
            once = MemorySpaceAssignment(vmem(size), can_share)(module)
            assert hlo.parse(again.to_text()).to_text() == again.to_text()
            assert [i.shape for i in again.entry.instructions] == [i.shape for i in once.entry.instructions]


def test_the_most_used_byte_comes_first() -> None:
    """There is room for one of the two that live at the same time: `much` is read three times, `little` once."""
    module, assignment = placed(
        hlo.parse("""HloModule m, is_scheduled=true
        ENTRY e {
          x = f32[16] parameter(0)
          little = f32[16] reverse(x), dimensions={0}
          much = f32[16] reverse(x), dimensions={0}
          p = f32[16] reverse(much), dimensions={0}
          q = f32[16] reverse(much), dimensions={0}
          s = f32[16] reverse(much), dimensions={0}
          t = f32[16] reverse(little), dimensions={0}
          ROOT r = (f32[16], f32[16], f32[16], f32[16]) tuple(p, q, s, t)
        }"""),
        64,
    )
    assert shape_of(module, "much") == "f32[16]{0:S(1)}"
    assert reason_of(assignment, "little") == "no room"


def test_arguments_and_results_in_fast_memory_take_of_the_limit() -> None:
    """64 bytes each; two intermediate buffers at a time."""
    text = CHAIN.replace("x = f32[16]", "x = f32[16]{0:S(1)}").replace("r = f32[16]", "r = f32[16]{0:S(1)}")
    for size, left in ((0, 0), (64, 0), (191, 0), (192, 64), (255, 64), (256, 128), (1024, 128)):
        module, assignment = placed(hlo.parse(text), size)
        assert sum(a.size for a in assignment.arenas if a.index == 1) == left
        assert shape_of(module, "x") == shape_of(module, "r") == "f32[16]{0:S(1)}"


def test_other_memory_spaces_are_kept() -> None:
    """Arguments and results in the host's memory, S(5), and what a program puts there itself."""
    text = CHAIN.replace("x = f32[16]", "x = f32[16]{0:S(5)}").replace("r = f32[16]", "r = f32[16]{0:S(5)}")
    module, assignment = placed(hlo.parse(text.replace("c = f32[16]", "c = f32[16]{0:S(3)}")), 64)
    spaces = [shape_of(module, name) for name in "xacr"]
    assert spaces == ["f32[16]{0:S(5)}", "f32[16]{0:S(1)}", "f32[16]{0:S(3)}", "f32[16]{0:S(5)}"]
    assert [a.index for a in assignment.arenas] == [0, 1, 3]
    entry = "entry_computation_layout={(pred[], f32[16]{0:S(5)})->f32[16]{0:S(5)}}"
    for target in ("cpu", "tpu"):
        text = BRANCHES.replace("HloModule m,", f"HloModule m, {entry},")
        compiled, _ = optimize(hlo.parse(text), target)
        assert entry in compiled.to_text() and ("S(1)" in compiled.to_text()) is (target == "tpu")


def test_too_large_and_no_room_are_told_apart() -> None:
    _, assignment = placed(
        hlo.parse("""HloModule m, is_scheduled=true
        ENTRY e {
          x = f32[16] parameter(0)
          huge = f32[64] concatenate(x, x, x, x), dimensions={0}
          a = f32[16] reverse(x), dimensions={0}
          b = f32[16] negate(a)
          c = f32[16] subtract(a, b)
          d = f32[16] slice(huge), slice={[0:16]}
          e = f32[16] add(c, d)
          f = f32[16] multiply(e, a)
          ROOT r = f32[16] reverse(f), dimensions={0}
        }"""),
        128,
    )
    assert reason_of(assignment, "huge") == "too large"
    reasons = {r.reason for r in assignment.rows if r.slice.allocation.kind is AllocationKind.ARENA}
    assert "no room" in reasons and "" in reasons


LOOP = """HloModule m, is_scheduled=true
cond {
  p = (s32[], f32[16], f32[16]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(7)
  ROOT less = pred[] compare(i, n), direction=LT
}
body {
  q = (s32[], f32[16], f32[16]) parameter(0)
  j = s32[] get-tuple-element(q), index=0
  one = s32[] constant(1)
  next = s32[] add(j, one)
  u = f32[16] get-tuple-element(q), index=1
  v = f32[16] get-tuple-element(q), index=2
  w = f32[16] reverse(u), dimensions={0}
  new = f32[16] add(w, v)
  ROOT t = (s32[], f32[16], f32[16]) tuple(next, v, new)
}
ENTRY e {
  x = f32[16] parameter(0)
  zero = s32[] constant(0)
  y = f32[16] reverse(x), dimensions={0}
  z = f32[16] negate(y)
  start = (s32[], f32[16], f32[16]) tuple(zero, y, z)
  loop = (s32[], f32[16], f32[16]) while(start), condition=cond, body=body
  g = f32[16] get-tuple-element(loop), index=1
  h = f32[16] get-tuple-element(loop), index=2
  k = f32[16] subtract(g, h)
  ROOT r = f32[16] reverse(k), dimensions={0}
}"""


def test_the_state_of_a_loop_lies_in_one_memory() -> None:
    """Its leaves swap places in the body; all that is handed on has one type."""
    module, assignment = placed(hlo.parse(LOOP), 4096)
    state = "(s32[], f32[16]{0:S(1)}, f32[16]{0:S(1)})"
    for name in ("p", "q", "t", "start", "loop"):
        assert shape_of(module, name) == state
    assert shape_of(module, "w") == shape_of(module, "y") == "f32[16]{0:S(1)}"
    assert reason_of(assignment, "zero") == "handed on with constant zero"


def test_the_body_of_a_loop_comes_before_what_lies_around_it() -> None:
    """One buffer fits: the body's `inner`, touched in every round, not `outer`, which waits for the end of the loop."""
    text = LOOP.replace("reverse(u), dimensions={0}", "reverse(inner), dimensions={0}").replace(
        "  w =", "  inner = f32[16] reverse(u), dimensions={0}\n  w ="
    )
    text = text.replace("  y =", "  outer = f32[16] reverse(x), dimensions={0}\n  y =")
    text = text.replace("reverse(k)", "reverse(sum)").replace("  ROOT r", "  sum = f32[16] add(k, outer)\n  ROOT r")
    module, assignment = placed(hlo.parse(text), 64)
    assert shape_of(module, "inner") == "f32[16]{0:S(1)}"
    assert reason_of(assignment, "outer") == "no room"


def test_loops_that_run_forever_are_ranked_too() -> None:
    """40 loops in one another, each of 2**31 rounds: more than a float holds."""
    depth = 40
    inner = "w0 = f32[8] reverse(x0), dimensions={0}"
    parts = ["HloModule m, is_scheduled=true"]
    for k in range(depth):
        parts.append(f"""
        c{k} {{
          p{k} = (s32[], f32[8]) parameter(0)
          a{k} = s32[] get-tuple-element(p{k}), index=0
          m{k} = s32[] constant(2147483647)
          ROOT d{k} = pred[] compare(a{k}, m{k}), direction=LT
        }}
        b{k} {{
          q{k} = (s32[], f32[8]) parameter(0)
          i{k} = s32[] get-tuple-element(q{k}), index=0
          x{k} = f32[8] get-tuple-element(q{k}), index=1
          o{k} = s32[] constant(1)
          h{k} = s32[] add(i{k}, o{k})
          {inner}
          ROOT t{k} = (s32[], f32[8]) tuple(h{k}, w{k})
        }}""")
        inner = f"""z{k + 1} = s32[] constant(0)
          s{k + 1} = (s32[], f32[8]) tuple(z{k + 1}, x{k + 1})
          l{k + 1} = (s32[], f32[8]) while(s{k + 1}), condition=c{k}, body=b{k}
          w{k + 1} = f32[8] get-tuple-element(l{k + 1}), index=1"""
    parts.append(f"""
    ENTRY e {{
      x = f32[8] parameter(0)
      x{depth} = f32[8] reverse(x), dimensions={{0}}
      {inner}
      ROOT r = f32[8] reverse(w{depth}), dimensions={{0}}
    }}""")
    module = hlo.parse("".join(parts))
    (loop,) = [i for i in module.entry.instructions if i.opcode is Opcode.WHILE]
    assert known_trip_count(loop) == 2**31 - 1
    spaced = MemorySpaceAssignment(vmem(4096), can_share)(module)
    assert shape_of(spaced, f"x{depth}") == shape_of(spaced, "w0") == "f32[8]{0:S(1)}"


def test_loops_initialised_by_an_argument_stay_with_it() -> None:
    module, assignment = placed(hlo.parse(LOOP.replace("tuple(zero, y, z)", "tuple(zero, x, z)")), 4096)
    assert shape_of(module, "loop") == "(s32[], f32[16]{0}, f32[16]{0})"
    assert reason_of(assignment, "loop{1}") == "handed on with argument 0"


BRANCHES = """HloModule m, is_scheduled=true
left {
  a = f32[16] parameter(0)
  ROOT b = f32[16] reverse(a), dimensions={0}
}
right {
  c = f32[16] parameter(0)
  ROOT d = f32[16] cosine(c)
}
ENTRY e {
  which = pred[] parameter(0)
  x = f32[16] parameter(1)
  y = f32[16] reverse(x), dimensions={0}
  chosen = f32[16] conditional(which, y, y), true_computation=left, false_computation=right
  ROOT r = f32[16] reverse(chosen), dimensions={0}
}"""


def test_branches_and_their_result_lie_in_one_memory() -> None:
    module, _ = placed(hlo.parse(BRANCHES), 4096)
    for name in ("y", "a", "b", "c", "d", "chosen"):
        assert shape_of(module, name) == "f32[16]{0:S(1)}"


FUSIONS = """HloModule m, is_scheduled=true
f {
  p = f32[16] parameter(0)
  q = f32[16] parameter(1)
  s = f32[16] add(p, q)
  m = f32[16] multiply(s, q)
  ROOT t = (f32[16], f32[16]) tuple(s, m)
}
ENTRY e {
  x = f32[16] parameter(0)
  y = f32[16] reverse(x), dimensions={0}
  one = (f32[16], f32[16]) fusion(y, x), kind=kLoop, calls=f
  g = f32[16] get-tuple-element(one), index=0
  h = f32[16] get-tuple-element(one), index=1
  z = f32[16] reverse(g), dimensions={0}
  two = (f32[16], f32[16]) fusion(h, z), kind=kLoop, calls=f
  k = f32[16] get-tuple-element(two), index=0
  l = f32[16] get-tuple-element(two), index=1
  v = f32[16] reverse(k), dimensions={0}
  ROOT r = f32[16] subtract(v, l)
}"""


def test_bodies_of_fusions_say_where_operands_and_results_lie() -> None:
    """The two fusions share a body; their operands are in different memories."""
    module, _ = placed(hlo.parse(FUSIONS), 4096)
    bodies = {i.name: i.attributes.calls for i in module.instructions() if i.opcode is Opcode.FUSION}
    assert bodies["one"] is not bodies["two"]
    assert [p.shape.to_text() for p in bodies["one"].parameters] == ["f32[16]{0:S(1)}", "f32[16]{0}"]
    assert [p.shape.to_text() for p in bodies["two"].parameters] == ["f32[16]{0:S(1)}", "f32[16]{0:S(1)}"]
    both = "(f32[16]{0:S(1)}, f32[16]{0:S(1)})"
    assert bodies["one"].root.shape.to_text() == both
    assert [o.shape.to_text() for o in bodies["one"].root.operands] == ["f32[16]{0:S(1)}"] * 2


def test_reading_a_slice_is_not_reading_all() -> None:
    """Room for one. `whole` is read whole twice; of `sliced`, as large, only a slice each time, in a longer program."""
    module, _ = placed(
        hlo.parse("""HloModule m, is_scheduled=true
        less {
          l = f32[] parameter(0)
          m = f32[] parameter(1)
          ROOT k = pred[] compare(l, m), direction=LT
        }
        ENTRY e {
          x = f32[16] parameter(0)
          sliced = f32[16] reverse(x), dimensions={0}
          whole = f32[16] reverse(x), dimensions={0}
          a = f32[1] slice(sliced), slice={[0:1]}
          b = f32[1] slice(sliced), slice={[1:2]}
          c = f32[1] slice(sliced), slice={[2:3]}
          d = f32[16] sort(whole), dimensions={0}, to_apply=less
          ROOT r = (f32[16], f32[1], f32[1], f32[1]) tuple(d, a, b, c)
        }"""),
        64,
    )
    assert shape_of(module, "whole") == "f32[16]{0:S(1)}" and shape_of(module, "sliced") == "f32[16]{0}"


def test_the_report_has_everything() -> None:
    shape = "f32[3,5]{1,0:T(8,128)}"
    module = hlo.parse(CHAIN.replace("f32[16]", shape))
    _, assignment = placed_without_running(module, 10_000)
    report = assignment.report()
    row = next(r for r in report.rows if "a" in r.holders)
    assert (row.logical_bytes, row.physical_bytes, row.space) == (60, 4096, 1)
    assert row.shape is not None and row.shape.to_text() == "f32[3,5]{1,0:T(8,128)S(1)}"
    fast, main = report.space(1), report.space(0)
    assert fast is not None and main is not None
    assert (fast.name, fast.limit, fast.arena_peak, fast.arena_bytes) == ("VMEM", 10_000, 8192, 8192)
    assert main.physical_bytes == 2 * 4096 and main.logical_bytes == 2 * 60
    text = assignment.to_text()
    assert "VMEM S(1)" in text and "10,000" in text and "99 %" in text and "arena S(1)" in text


def test_users_see_what_lies_in_fast_memory() -> None:
    step = hloom.jit(lambda x: jnp.tanh(x @ x) @ x)
    compiled = step.lower(jnp.ones((16, 16))).compile(target=hlo.TpuTarget(vmem_bytes=2**15))
    memory = compiled.memory_analysis()
    assert memory.report is not None
    fast = memory.report.space(1)
    assert fast is not None and fast.limit == 2**15 and 0 < fast.arena_peak <= fast.arena_bytes <= 2**15
    assert fast.physical_bytes == sum(row.physical_bytes for row in memory.report.rows if row.space == 1)
    assert "VMEM S(1)" in memory.text and memory.text in str(memory)
    plain = step.lower(jnp.ones((16, 16))).compile().memory_analysis().report
    assert plain is not None and [s.number for s in plain.spaces] == [0]


def placed_without_running(module: HloModule, size: int) -> tuple[HloModule, BufferAssignment]:
    """For layouts that the byte machine does not know."""
    spaced = MemorySpaceAssignment(vmem(size), can_share)(module)
    assignment = assign_buffers(spaced, can_share, fast_memory=vmem(size))
    verify_buffers(assignment, can_share)
    return spaced, assignment


def test_reasons_when_the_pass_did_not_run() -> None:
    module = hlo.parse(CHAIN)
    assignment = assign_buffers(module, can_share, fast_memory=vmem(4096))
    assert reason_of(assignment, "a") == "not put there"


def test_the_checker_knows_spaces_and_limits() -> None:
    module, assignment = placed(hlo.parse(CHAIN), 1024)
    with pytest.raises(hlo.VerificationError, match="buffer_c7"):
        verify_buffers(replace(assignment, fast_memory=vmem(64)), can_share)
    with pytest.raises(hlo.VerificationError, match="buffer_c7"):
        assign_buffers(module, can_share, fast_memory=vmem(64))
    a = next(i for i in assignment.slices if i.name == "a")
    place = assignment.slice(a)
    elsewhere = replace(place, allocation=Allocation(AllocationKind.ARENA, 0, 128))
    with pytest.raises(hlo.VerificationError, match="buffer_c6"):
        verify_buffers(replace(assignment, slices={**assignment.slices, a: (elsewhere,)}), can_share)
    with pytest.raises(hlo.VerificationError, match="buffer_c6"):
        verify_buffers(replace(assignment, slices={**assignment.slices, a: (replace(place, size=32),)}), can_share)


def test_buffers_of_different_spaces_are_not_shared() -> None:
    """`b` is written over `a`, unless it is in another memory space."""
    text = CHAIN.replace("reverse(a), dimensions={0}", "negate(a)").replace("add(a, b)", "add(b, b)")
    for space, shared in (("", True), ("{0:S(1)}", False)):
        assignment = assign_buffers(hlo.parse(text.replace("a = f32[16]", f"a = f32[16]{space}")), can_share)
        verify_buffers(assignment, can_share)
        assert any(set("ab") <= set(row.holders) for row in assignment.rows) is shared


NATIVE_LOOP = """HloModule m, is_scheduled=true
condition { c = (f32[8], f32[8]) parameter(0) ROOT b = pred[] constant(false) }
body {
  s = (f32[8], f32[8]) parameter(0)
  x = f32[8] get-tuple-element(s), index=0
  ROOT t = (f32[8], f32[8]) tuple(x, x)
}
loop {
  p = f32[8] parameter(0)
  i = (f32[8], f32[8]) tuple(p, p)
  w = (f32[8], f32[8]) while(i), condition=condition, body=body
  ROOT g = f32[8] get-tuple-element(w), index=1
}
ENTRY e {
  x = f32[8] parameter(0)
  f = f32[8] fusion(x), kind=kCustom, calls=loop
  ROOT r = f32[8] reverse(f), dimensions={0}
}"""


def test_the_values_within_a_native_loop_have_no_memory() -> None:
    module, _ = placed(hlo.parse(NATIVE_LOOP), 1024)
    assert shape_of(module, "f") == shape_of(module, "g") == "f32[8]{0:S(1)}"
    assert shape_of(module, "w") == "(f32[8]{0}, f32[8]{0})"


@hypothesis.given(st.randoms(use_true_random=False), st.sampled_from(BUDGETS))
@hypothesis.settings(max_examples=60, suppress_health_check=list(hypothesis.HealthCheck))
def test_random_modules_fit_and_give_the_same(rng: random.Random, size: int) -> None:
    module = random_module(rng, steps=14)
    if rng.random() < 0.5:
        module, _ = optimize(module, options=PassOptions())
    placed(module, size)


class DenseTarget(hlo.CpuTarget):
    """Dense buffers in two memories."""

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def fast_memory(self) -> hlo.MemorySpace:
        return vmem(self.size)


@hypothesis.given(st.randoms(use_true_random=False), st.sampled_from(BUDGETS[1:]))
@hypothesis.settings(max_examples=10, suppress_health_check=list(hypothesis.HealthCheck))
def test_random_modules_run_in_two_memories(rng: random.Random, size: int) -> None:
    """Compiled, with the backend's own rule of sharing."""
    module = random_module(rng, steps=8)
    arguments = random_arguments(module, 0)
    plain = NumbaCompiler().compile(module).execute(arguments)
    spaced = NumbaCompiler().compile(module, target=DenseTarget(size)).execute(arguments)
    for a, b in zip(plain, spaced, strict=True):
        np.testing.assert_array_equal(a, b)


@hypothesis.given(st.randoms(use_true_random=False), st.sampled_from(("0", "some", "all")))
@hypothesis.settings(max_examples=10, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
def test_random_modules_on_the_tpu_target_fit(rng: random.Random, much: str) -> None:
    """Tiled buffers in two memories."""
    module = random_module(rng, steps=8)
    arguments = random_arguments(module, 0)
    size = {"0": 0, "some": 16384, "all": 2**30}[much]
    executable = NumbaCompiler().compile(module, target=hlo.TpuTarget(vmem_bytes=size))
    check_layouts_agree(executable.module)
    assert_same_arrays(hlo.evaluate(module, *arguments), executable.execute(arguments), rtol=1e-4)


def test_one_more_step_of_a_fused_loop_is_counted() -> None:
    """Counter and comparison of an optimised loop are in fusions."""
    module = hlo.parse(LOOP)
    (loop,) = [i for i in module.entry.instructions if i.opcode is Opcode.WHILE]
    assert known_trip_count(loop) == 7
    optimized, _ = optimize(module, options=PassOptions())
    (loop,) = [i for i in optimized.instructions() if i.opcode is Opcode.WHILE]
    assert loop.attributes.condition.root.opcode is Opcode.FUSION
    assert known_trip_count(loop) == 7


def test_heaps_keep_their_limit() -> None:
    heap = Heap(64, limit=128)
    assert heap.add(Request(64, 0, 2)) == 0
    assert heap.add(Request(100, 1, 3)) is None
    assert heap.add_all([Request(64, 1, 3), Request(64, 1, 3)]) is None
    assert heap.size == 64
    assert heap.add(Request(100, 2, 3)) == 0
    assert heap.size == 128
    assert not heap.has_room_for([Request(1, 2, 3)], 128) and heap.has_room_for([Request(1, 2, 3)], 192)
    assert heap.size == 128


REQUESTS = st.lists(st.builds(lambda size, start, length: Request(size, start, start + length),
                              st.integers(1, 200), st.integers(0, 12), st.integers(1, 6)), max_size=20)  # fmt: skip


@hypothesis.given(REQUESTS, st.integers(0, 600))
def test_heaps_place_whatever_there_is_room_for(requests: list[Request], limit: int) -> None:
    """Against trying every offset: nothing overlaps, nothing ends above the limit, nothing that fits is refused."""
    heap = Heap(64, limit)
    lying: list[tuple[Request, int]] = []

    def free(request: Request, offset: int) -> bool:
        return offset + -(-request.size // 64) * 64 <= limit and all(
            other.end <= request.start
            or request.end <= other.start
            or offset + request.size <= low
            or low + other.size <= offset
            for other, low in lying
        )

    for request in requests:
        possible = [offset for offset in range(0, limit, 64) if free(request, offset)]
        offset = heap.add(request)
        assert offset in possible if possible else offset is None
        if offset is not None:
            lying.append((request, offset))
    assert peak(r for r, _ in lying) <= heap.size <= limit


def test_peaks() -> None:
    assert peak([]) == 0
    assert peak([Request(3, 0, 2), Request(4, 1, 3), Request(5, 2, 4)]) == 9


@pytest.mark.parametrize("target", [DenseTarget, lambda size: hlo.TpuTarget(vmem_bytes=size)], ids=["dense", "tpu"])
@pytest.mark.parametrize("text", [LOOP, BRANCHES, FUSIONS], ids=["loop", "branches", "fusions"])
def test_kernels_stay_inside_their_buffers_in_both_memories(text: str, target: Callable[[int], hlo.Target]) -> None:
    module = hlo.parse(text)
    arguments = random_arguments(module, 0, special=False)
    for size in (0, 2**20):
        program = GuardedProgram(module, target=target(size))
        assert any(a.index == 1 for a in program.arenas) == (size > 0)
        assert_same_arrays(hlo.evaluate(module, *arguments), program.run(arguments), rtol=1e-6)


def test_the_program_is_the_same_with_the_pass_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOOM_DISABLE_PASSES", "memory-space-assignment")
    module = hlo.parse(FUSIONS)
    arguments = random_arguments(module, 0, special=False)
    executable = NumbaCompiler().compile(module, target="tpu")
    assert "S(1)" not in executable.module.to_text() and "not put there" in executable.memory_analysis().text
    assert_same_arrays(hlo.evaluate(module, *arguments), executable.execute(arguments), rtol=1e-6)
