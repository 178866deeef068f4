"""Buffer assignment: which values share memory, which must be copied, and that nothing is overwritten too early.

Every case runs on real bytes (support/byte_machine.py) and through the symbolic checker.
"""

from __future__ import annotations

import random
from dataclasses import replace

import hypothesis
import hypothesis.strategies as st
import pytest
from hloom.hlo.backend import optimize
from hloom.hlo.buffers import checker
from hloom.hlo.buffers.assignment import (
    ALIGNMENT,
    Allocation,
    AllocationKind,
    BufferAssignment,
    BufferSlice,
    assign_buffers,
)
from hloom.hlo.buffers.checker import verify_buffers
from hloom.hlo.buffers.coalescing import Buffer, Move, sequentialise
from hloom.hlo.buffers.heap import Request, place
from hloom.hlo.buffers.values import FirstLeaves, leaf_number
from hloom.hlo.builder import make_computation, make_instruction, make_module, make_parameter
from hloom.hlo.element_type import ElementType
from hloom.hlo.errors import VerificationError
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ir import HloInstruction, HloModule, InputOutputAlias
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.fuse.flatten_call_graph import FlattenCallGraph
from hloom.hlo.passes.fuse.memory_scheduler import MemoryScheduler
from hloom.hlo.passes.manager import PassOptions
from hloom.hlo.shape import Shape
from hloom.hlo.text.parser import parse

from support.byte_machine import ByteMachine, can_share
from support.comparing import assert_same_arrays
from support.random_modules import random_arguments, random_module


def assigned(module: HloModule) -> BufferAssignment:
    """The assignment, checked both ways."""
    module = FlattenCallGraph()(module)
    assignment = assign_buffers(module, can_share)
    verify_buffers(assignment, can_share)
    for seed in range(2):
        arguments = random_arguments(module, seed)
        assert_same_arrays(evaluate(module, *arguments), ByteMachine(assignment).run(arguments), rtol=0)
    return assignment


def named(assignment: BufferAssignment, name: str) -> HloInstruction:
    return next(i for i in assignment.slices if i.name == name)


def where(assignment: BufferAssignment, name: str, leaf: int = 0) -> BufferSlice:
    return assignment.leaves(named(assignment, name))[leaf]


def test_results_lie_where_the_caller_gets_them() -> None:
    assignment = assigned(parse("HloModule m  ENTRY e { x = f32[8] parameter(0)  ROOT r = f32[8] sine(x) }"))
    assert str(where(assignment, "r")) == "output 0[0:32]"
    assert str(where(assignment, "x")) == "parameter 0[0:32]"
    assert assignment.arena_size == 0 and assignment.copies == ()


def test_elementwise_works_in_place_on_what_nobody_needs_any_more() -> None:
    assignment = assigned(
        parse("""HloModule m
        ENTRY e {
          x = f32[8,8] parameter(0)
          a = f32[8,8] sine(x)
          b = f32[8,8] transpose(a), dimensions={1,0}
          c = f32[8,8] cosine(b)
          d = f32[8,8] add(c, b)
          ROOT t = f32[8,8] transpose(d), dimensions={1,0}
        }""")
    )
    assert where(assignment, "a") != where(assignment, "b")  # a transpose cannot
    assert where(assignment, "c") != where(assignment, "b")  # b is needed once more
    assert where(assignment, "d") in (where(assignment, "c"), where(assignment, "b"))
    assert assignment.arena_size == 2 * 256


@pytest.mark.parametrize("operands", ["old, new", "new, old"])
def test_a_result_goes_over_the_operand_that_is_computed_last(operands: str) -> None:
    """As in an output fusion, which has the rows of a product in memory of its own: both have the same kernel."""
    assignment = assigned(
        parse(f"""HloModule m
        ENTRY e {{
          x = f32[8,8] parameter(0)
          old = f32[8,8] sine(x)
          new = f32[8,8] dot(old, old), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
          sum = f32[8,8] add({operands})
          ROOT t = f32[8,8] transpose(sum), dimensions={{1,0}}
        }}""")
    )
    assert where(assignment, "sum") == where(assignment, "new") != where(assignment, "old")


def test_the_arena_is_reused() -> None:
    lines = ["x = f32[8,8] parameter(0)", "v0 = f32[8,8] sine(x)"]
    lines += [f"v{k + 1} = f32[8,8] transpose(v{k}), dimensions={{1,0}}" for k in range(20)]
    text = "HloModule m ENTRY e { " + "  ".join(lines) + "  ROOT r = f32[8,8] sine(v20) }"
    assert assigned(parse(text)).arena_size == 2 * 256


def test_the_arrays_of_a_result_are_freed_one_by_one() -> None:
    """The user of one half frees it, though the other half is still needed: it comes before a small new value."""
    module = parse("""HloModule m
    less { p = f32[] parameter(0)  q = f32[] parameter(1)  r = f32[] parameter(2)  s = f32[] parameter(3)
      ROOT less = pred[] compare(p, q), direction=LT }
    ENTRY e {
      x = f32[64] parameter(0)
      both = (f32[64], f32[64]) sort(x, x), dimensions={0}, to_apply=less
      first = f32[64] get-tuple-element(both), index=0
      second = f32[64] get-tuple-element(both), index=1
      small = f32[16] slice(second), slice={[0:16]}
      a = f32[32] slice(first), slice={[0:32]}
      b = f32[32] slice(second), slice={[0:32]}
      ROOT t = (f32[16], f32[32], f32[32]) tuple(small, a, b)
    }""")
    names = [i.name for i in MemoryScheduler()(module).entry.instructions]
    assert names.index("a") < names.index("small")


def test_parameters_and_constants_are_never_written() -> None:
    assignment = assigned(
        parse("""HloModule m
        ENTRY e {
          x = f32[4] parameter(0)
          c = f32[4] constant({1, 2, 3, 4})
          a = f32[4] negate(c)
          b = f32[4] negate(x)
          s = f32[4] add(a, b)
          ROOT r = (f32[4], f32[4], f32[4], f32[4]) tuple(x, c, s, s)
        }""")
    )
    # x, c and the second s must be copied
    copies = assignment.copies_at_end(assignment.module.entry)
    assert sorted(c.source.allocation.kind.value for c in copies) == ["constant", "output", "parameter"]
    assert {c.target.allocation.index for c in copies} <= {0, 1, 2, 3}
    assert len(assignment.constants) == 1


def test_equal_constants_are_kept_once() -> None:
    assignment = assigned(
        parse("""HloModule m
        ENTRY e {
          c = f32[2] constant({1, 2})
          d = f32[2] constant({1, 2})
          ROOT s = f32[2] add(c, d)
        }""")
    )
    assert where(assignment, "c") == where(assignment, "d")
    assert len(assignment.constants) == 1


LOOP = """HloModule m
body {
  s = (s32[], f32[8], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[8] get-tuple-element(s), index=1
  b = f32[8] get-tuple-element(s), index=2
  w = f32[8] get-tuple-element(s), index=3
  one = s32[] constant(1)
  next = s32[] add(i, one)
  BODY
}
condition {
  s2 = (s32[], f32[8], f32[8], f32[8]) parameter(0)
  i2 = s32[] get-tuple-element(s2), index=0
  limit = s32[] constant(5)
  ROOT less = pred[] compare(i2, limit), direction=LT
}
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  z = f32[8] parameter(2)
  start = s32[] constant(0)
  init = (s32[], f32[8], f32[8], f32[8]) tuple(start, x, y, z)
  loop = (s32[], f32[8], f32[8], f32[8]) while(init), condition=condition, body=body
  u = f32[8] get-tuple-element(loop), index=1
  v = f32[8] get-tuple-element(loop), index=2
  ROOT r = (f32[8], f32[8]) tuple(u, v)
}"""


def loop(body: str) -> BufferAssignment:
    return assigned(parse(LOOP.replace("BODY", body)))


def body_copies(assignment: BufferAssignment) -> int:
    return len(assignment.copies_at_end(named(assignment, "loop").attributes.body))


def test_loop_state_is_updated_in_place() -> None:
    assignment = loop(
        "a2 = f32[8] sine(a)  b2 = f32[8] add(b, w)  ROOT t = (s32[], f32[8], f32[8], f32[8]) tuple(next, a2, b2, w)"
    )
    assert body_copies(assignment) == 0
    assert where(assignment, "a2") == where(assignment, "a") == where(assignment, "u") == assignment.outputs[0]
    # the unchanged w stays in the caller's memory; counter, x and y start as copies
    assert where(assignment, "w") == where(assignment, "z")
    assert len(assignment.copies_before(named(assignment, "loop"))) == 3


def test_new_state_that_the_old_is_still_needed_for_is_copied() -> None:
    assignment = loop(
        "a2 = f32[8] sine(a)  rev = f32[8] reverse(a), dimensions={0}  b2 = f32[8] add(b, rev)  "
        "ROOT t = (s32[], f32[8], f32[8], f32[8]) tuple(next, a2, b2, w)"
    )
    assert body_copies(assignment) == 1
    assert where(assignment, "a2") != where(assignment, "a")


def test_swapped_state_goes_through_scratch_memory() -> None:
    assignment = loop("ROOT t = (s32[], f32[8], f32[8], f32[8]) tuple(next, b, a, w)")
    assert body_copies(assignment) == 3


def test_rotated_state() -> None:
    assignment = loop("ROOT t = (s32[], f32[8], f32[8], f32[8]) tuple(next, b, w, a)")
    assert body_copies(assignment) == 4


def test_one_value_for_two_leaves() -> None:
    assignment = loop("a2 = f32[8] add(a, b)  ROOT t = (s32[], f32[8], f32[8], f32[8]) tuple(next, a2, a2, w)")
    assert body_copies(assignment) == 1


def test_slices_of_state_are_written_in_place() -> None:
    """The usual scan: one element of a stack is written in each step."""
    text = LOOP.replace(
        "BODY",
        "e = f32[1] dynamic-slice(w, i), dynamic_slice_sizes={1}  a2 = f32[8] dynamic-update-slice(a, e, i)  "
        "ROOT t = (s32[], f32[8], f32[8], f32[8]) tuple(next, a2, b, w)",
    )
    assert body_copies(assigned(parse(text))) == 1  # the counter, which is needed after the next one is known
    assignment = assigned(MemoryScheduler()(parse(text)))  # which can wait
    assert body_copies(assignment) == 0
    assert where(assignment, "a2") == where(assignment, "a")
    assert where(assignment, "b") == where(assignment, "y")


def test_an_update_that_needs_the_old_array_later_is_not_in_place() -> None:
    assignment = loop(
        "e = f32[1] dynamic-slice(w, i), dynamic_slice_sizes={1}  a2 = f32[8] dynamic-update-slice(a, e, i)  "
        "b2 = f32[8] subtract(a, a2)  ROOT t = (s32[], f32[8], f32[8], f32[8]) tuple(next, a2, b2, w)"
    )
    assert where(assignment, "a2") != where(assignment, "a")


CONDITIONAL = """HloModule m
first {
  p = (f32[8], f32[8]) parameter(0)
  a = f32[8] get-tuple-element(p), index=0
  b = f32[8] get-tuple-element(p), index=1
  FIRST
}
second {
  q = (f32[8], f32[8]) parameter(0)
  c = f32[8] get-tuple-element(q), index=0
  d = f32[8] get-tuple-element(q), index=1
  SECOND
}
ENTRY e {
  which = pred[] parameter(0)
  x = f32[8] parameter(1)
  y = f32[8] parameter(2)
  x1 = f32[8] reverse(x), dimensions={0}
  y1 = f32[8] reverse(y), dimensions={0}
  operand = (f32[8], f32[8]) tuple(x1, y1)
  cond = (f32[8], f32[8]) conditional(which, operand, operand), true_computation=first, false_computation=second
  u = f32[8] get-tuple-element(cond), index=0
  v = f32[8] get-tuple-element(cond), index=1
  ROOT r = (f32[8], f32[8]) tuple(u, v)
}"""


def conditional(first: str, second: str) -> BufferAssignment:
    return assigned(parse(CONDITIONAL.replace("FIRST", first).replace("SECOND", second)))


def branch_copies(assignment: BufferAssignment) -> list[int]:
    branches = named(assignment, "cond").attributes.branch_computations
    return [len(assignment.copies_at_end(b)) for b in branches]


def test_branches_write_the_result_directly() -> None:
    assignment = conditional(
        "a2 = f32[8] sine(a)  b2 = f32[8] cosine(b)  ROOT t = (f32[8], f32[8]) tuple(a2, b2)",
        "c2 = f32[8] abs(c)  d2 = f32[8] add(d, c)  ROOT t2 = (f32[8], f32[8]) tuple(c2, d2)",
    )
    assert branch_copies(assignment) == [0, 0]
    assert where(assignment, "a2") == where(assignment, "u") == assignment.outputs[0]


def test_branches_that_swap_or_pass_on() -> None:
    assignment = conditional(
        "ROOT t = (f32[8], f32[8]) tuple(b, a)",
        "ROOT t2 = (f32[8], f32[8]) tuple(c, d)",
    )
    assert sum(branch_copies(assignment)) >= 2


def test_what_all_branches_pass_on_is_not_copied() -> None:
    assignment = conditional(
        "a2 = f32[8] sine(a)  ROOT t = (f32[8], f32[8]) tuple(a2, b)",
        "c2 = f32[8] abs(c)  ROOT t2 = (f32[8], f32[8]) tuple(c2, d)",
    )
    assert where(assignment, "v") == where(assignment, "y1") == assignment.outputs[1]
    assert branch_copies(assignment) == [0, 0]


def test_donated_parameters_become_results() -> None:
    text = "HloModule m ENTRY e { x = f32[8] parameter(0)  y = f32[8] parameter(1)  ROOT r = f32[8] add(x, y) }"
    module = replace(parse(text), input_output_aliases=(InputOutputAlias((), 0),))
    assignment = assigned(module)
    assert assignment.outputs[0].allocation.kind is AllocationKind.PARAMETER
    assert where(assignment, "r") == where(assignment, "x")
    assert assignment.copies == ()
    assert assignment.total_size(AllocationKind.OUTPUT) == 0


def test_donated_parameters_that_are_still_needed() -> None:
    text = """HloModule m ENTRY e {
      x = f32[8] parameter(0)  y = f32[8] parameter(1)
      s = f32[8] add(x, y)  d = f32[8] subtract(y, x)
      ROOT r = (f32[8], f32[8], f32[8]) tuple(s, d, x)
    }"""
    aliases = (InputOutputAlias((0,), 0), InputOutputAlias((1,), 1))
    assignment = assigned(replace(parse(text), input_output_aliases=aliases))
    assert [str(s.allocation) for s in assignment.outputs] == ["parameter 0", "parameter 1", "output 2"]


def test_donated_parameters_swapped() -> None:
    text = """HloModule m ENTRY e {
      x = f32[8] parameter(0)  y = f32[8] parameter(1)  ROOT r = (f32[8], f32[8]) tuple(y, x)
    }"""
    aliases = (InputOutputAlias((0,), 0), InputOutputAlias((1,), 1))
    assignment = assigned(replace(parse(text), input_output_aliases=aliases))
    assert len(assignment.copies) == 3


def test_reshapes_and_tuples_are_no_memory_of_their_own() -> None:
    assignment = assigned(
        parse("""HloModule m
        ENTRY e {
          x = f32[2,3] parameter(0)
          a = f32[2,3] sine(x)
          b = f32[6] reshape(a)
          t = (f32[6], (f32[2,3], f32[6])) tuple(b, u)
          u = (f32[2,3], f32[6]) tuple(a, b)
          n = (f32[2,3], f32[6]) get-tuple-element(t), index=1
          c = f32[6] get-tuple-element(n), index=1
          ROOT r = f32[6] negate(c)
        }""".replace("t = (f32[6], (f32[2,3], f32[6])) tuple(b, u)\n", "").replace(
            "n = ", "t = (f32[6], (f32[2,3], f32[6])) tuple(b, u)\n n = "
        ))
    )
    assert where(assignment, "a") == where(assignment, "b") == where(assignment, "c")
    assert assignment.slice(named(assignment, "t"), (1, 0)) == where(assignment, "a")
    assert len(assignment.leaves(named(assignment, "t"))) == 3


def test_empty_arrays_need_nothing() -> None:
    assignment = assigned(
        parse("""HloModule m
        ENTRY e {
          x = f32[0,3] parameter(0)
          a = f32[0,3] sine(x)
          b = f32[3,0] transpose(a), dimensions={1,0}
          ROOT r = (f32[0,3], f32[3,0]) tuple(x, b)
        }""")
    )
    assert assignment.arena_size == 0 and assignment.copies == ()


def test_opaque_loops_are_one_instruction() -> None:
    module = parse(
        LOOP.replace(
            "BODY", "a2 = f32[8] sine(a)  ROOT t = (s32[], f32[8], f32[8], f32[8]) tuple(next, a2, b, w)"
        )
    )

    def is_loop(instruction: HloInstruction) -> bool:
        return instruction.opcode is Opcode.WHILE

    assignment = assign_buffers(module, can_share, is_opaque=is_loop)
    verify_buffers(assignment, can_share, is_opaque=is_loop)
    arguments = random_arguments(module, 0)
    assert_same_arrays(evaluate(module, *arguments), ByteMachine(assignment, is_loop).run(arguments), rtol=0)
    assert not any(i.name == "a2" for i in assignment.slices)
    assert len(assignment.leaves(named(assignment, "loop"))) == 4


def test_memory_map_names_what_lies_where() -> None:
    text = loop("a2 = f32[8] sine(a)  ROOT t = (s32[], f32[8], f32[8], f32[8]) tuple(next, b, a2, w)").to_text()
    assert text.startswith("memory map of m\n")
    for wanted in ("parameters", "outputs", "constants", "before loop:", "at the end of body:", "a2"):
        assert wanted in text


# the parts


@hypothesis.given(
    st.lists(
        st.tuples(st.integers(0, 300), st.integers(0, 30), st.integers(1, 15)).map(
            lambda t: Request(t[0], t[1], t[1] + t[2])
        ),
        max_size=30,
    )
)
@hypothesis.settings(max_examples=60)
def test_heap_never_overlaps_what_is_alive_together(requests: list[Request]) -> None:
    offsets, size = place(requests, ALIGNMENT)
    for i, (a, at) in enumerate(zip(requests, offsets, strict=True)):
        assert at % ALIGNMENT == 0 and at + a.size <= max(size, at + a.size if not a.size else size)
        for b, bt in zip(requests[:i], offsets[:i], strict=True):
            if a.start < b.end and b.start < a.end and a.size and b.size:
                assert at + a.size <= bt or bt + b.size <= at
    rounded = [(-(-r.size // ALIGNMENT) * ALIGNMENT, r) for r in requests]
    peak = max(sum(bytes_ for bytes_, r in rounded if r.start <= time < r.end) for time in range(50))
    assert peak <= size <= sum(bytes_ for bytes_, _ in rounded)


def test_heap_takes_the_tightest_gap() -> None:
    requests = [Request(640, 0, 10), Request(128, 0, 2), Request(320, 0, 10), Request(64, 0, 3), Request(64, 5, 8)]
    offsets, size = place(requests, ALIGNMENT)
    assert size == 640 + 320 + 128 + 64
    assert offsets[4] in (offsets[1], offsets[3])


@hypothesis.given(st.lists(st.integers(0, 6), min_size=1, max_size=7))
@hypothesis.settings(max_examples=100)
def test_parallel_moves(sources: list[int]) -> None:
    """Any assignment of old values to places, cycles included, one move after the other."""
    places = [Buffer(8, [], []) for _ in range(7)]
    moves = [Move(places[s], places[t]) for t, s in enumerate(sources) if s != t]
    scratch: list[Buffer] = []
    contents: dict[int, object] = {id(p): n for n, p in enumerate(places)}
    for move in sequentialise(moves, 0, scratch):
        contents[id(move.target)] = contents[id(move.source)]
    assert [contents[id(p)] for p in places[: len(sources)]] == sources
    assert len(scratch) <= len(sources) // 2


@hypothesis.given(st.randoms(use_true_random=False), st.booleans())
@hypothesis.settings(max_examples=60, suppress_health_check=list(hypothesis.HealthCheck))
def test_random_modules_run_on_their_memory(rng: random.Random, donate: bool) -> None:
    module = FlattenCallGraph()(random_module(rng, steps=12))
    if donate:
        module = replace(module, input_output_aliases=_possible_donations(module))
    assigned(module)


def _possible_donations(module: HloModule) -> tuple[InputOutputAlias, ...]:
    root = module.entry.root.shape
    outputs = [((k,), s) for k, s in enumerate(root.elements)] if root.is_tuple else [((), root)]
    found = []
    for number, parameter in enumerate(module.entry.parameters):
        match = next((o for o in outputs if o[1].compatible(parameter.shape)), None)
        if match is not None:
            outputs.remove(match)
            found.append(InputOutputAlias(match[0], number))
    return tuple(found)


@hypothesis.given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=40, suppress_health_check=list(hypothesis.HealthCheck))
def test_random_modules_after_all_passes(rng: random.Random) -> None:
    module = random_module(rng, steps=15)
    optimized, _ = optimize(module, options=PassOptions())
    assignment = assigned(optimized)
    arguments = random_arguments(module, 3)
    assert_same_arrays(evaluate(module, *arguments), ByteMachine(assignment).run(arguments), rtol=1e-4)


# the checker must be able to fail


def corrupted(assignment: BufferAssignment, name: str, place: BufferSlice) -> BufferAssignment:
    slices = dict(assignment.slices)
    slices[named(assignment, name)] = (place,)
    return replace(assignment, slices=slices)


def test_the_checker_finds_wrong_assignments() -> None:
    module = parse("""HloModule m
    ENTRY e {
      x = f32[16] parameter(0)
      k = f32[16] constant({1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16})
      a = f32[16] reverse(x), dimensions={0}
      b = f32[16] reverse(a), dimensions={0}
      c = f32[16] add(a, k)
      d = f32[16] reverse(c), dimensions={0}
      ROOT r = f32[16] add(d, b)
    }""")
    good = assigned(module)
    arena = where(good, "a").allocation
    for name, place_, label in (
        ("b", where(good, "a"), "buffer_c3"),  # a reverse over its own operand
        ("c", where(good, "b"), "buffer_c1"),  # over a buffer that a later instruction reads
        ("b", where(good, "x"), "buffer_c2"),  # the caller's memory
        ("c", where(good, "k"), "buffer_c2"),
        ("b", BufferSlice(arena, arena.size, 64), "buffer_c4"),
        ("b", BufferSlice(arena, 32, 64), "buffer_c4"),
        ("r", BufferSlice(Allocation(AllocationKind.OUTPUT, 1, 64), 0, 64), "buffer_c1"),
    ):
        with pytest.raises(VerificationError, match=label):
            verify_buffers(corrupted(good, name, place_), can_share)


def test_the_checker_finds_missing_copies() -> None:
    good = loop("ROOT t = (s32[], f32[8], f32[8], f32[8]) tuple(next, b, a, w)")
    body = named(good, "loop").attributes.body
    for copies in ((), good.at_end[body][::-1], good.at_end[body][:-1]):
        with pytest.raises(VerificationError, match=r"which holds something else|bad copy"):
            verify_buffers(replace(good, at_end={**good.at_end, body: copies}), can_share)
    with pytest.raises(VerificationError, match="which holds something else"):
        verify_buffers(replace(good, before={}), can_share)


def loops_in_loops(depth: int) -> BufferAssignment:
    """Loops that swap two arrays, one in the other."""
    body = "ROOT t{0} = (s32[], f32[8], f32[8]) tuple(next{0}, {1})"
    text = """
    body{0} {{
      s{0} = (s32[], f32[8], f32[8]) parameter(0)
      i{0} = s32[] get-tuple-element(s{0}), index=0
      a{0} = f32[8] get-tuple-element(s{0}), index=1
      b{0} = f32[8] get-tuple-element(s{0}), index=2
      one{0} = s32[] constant(1)
      next{0} = s32[] add(i{0}, one{0})
      {1}
    }}
    """
    loop = """zero{0} = s32[] constant(0)
      init{0} = (s32[], f32[8], f32[8]) tuple(zero{0}, {2}, {3})
      loop{0} = (s32[], f32[8], f32[8]) while(init{0}), condition=condition, body=body{1}
      x{0} = f32[8] get-tuple-element(loop{0}), index=1
      y{0} = f32[8] get-tuple-element(loop{0}), index=2
      """
    computations = text.format(0, body.format(0, "b0, a0"))
    for d in range(1, depth):
        inner = loop.format(d, d - 1, f"a{d}", f"b{d}") + body.format(d, f"y{d}, x{d}")
        computations += text.format(d, inner)
    entry = loop.format(depth, depth - 1, "p", "q")
    module = parse(f"""HloModule nest, is_scheduled=true
    condition {{
      s = (s32[], f32[8], f32[8]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      limit = s32[] constant(3)
      ROOT less = pred[] compare(i, limit), direction=LT
    }}
    {computations}
    ENTRY main {{
      p = f32[8] parameter(0)
      q = f32[8] parameter(1)
      {entry}
      ROOT r = f32[8] subtract(x{depth}, y{depth})
    }}""")
    return assign_buffers(FlattenCallGraph()(module), can_share)


def test_the_checker_runs_a_loop_once_a_situation(monkeypatch: pytest.MonkeyPatch) -> None:
    depth, runs = 10, []
    iterations = checker._Checker.iterations
    monkeypatch.setattr(checker._Checker, "iterations", lambda *args: runs.append(args[1]) or iterations(*args))
    assignment = loops_in_loops(depth)
    verify_buffers(assignment, can_share)
    assert depth <= len(runs) <= 4 * depth, "twice for each loop around it would be 2^9"
    for body, copies in assignment.at_end.items():
        if body.name.startswith("body"):
            with pytest.raises(VerificationError, match="bad copy"):
                verify_buffers(replace(assignment, at_end={**assignment.at_end, body: copies[1:]}), can_share)


def test_large_programs_are_assigned_quickly() -> None:
    x = make_parameter(0, Shape.array(ElementType.F32, (16,)), "x")
    y = x
    kept = []
    for k in range(6000):
        y = make_instruction(Opcode.SIN if k % 2 else Opcode.ADD, [y] if k % 2 else [y, x])
        kept.append(y)
    for value in reversed(kept[::20]):
        y = make_instruction(Opcode.MULTIPLY, [y, value])
    module = make_module("long", make_computation("main", y, [x]))
    assignment = assign_buffers(module, can_share)
    assert assignment.arena_size <= 320 * ALIGNMENT


def test_numbers_of_leaves() -> None:
    shape = Shape.parse("(f32[3], (s32[], (f32[2], f32[])), (), f32[5])")
    leaves = FirstLeaves()
    places = [(0,), (1,), (1, 0), (1, 1), (1, 1, 1), (3,)]
    assert [leaves.number(shape, place) for place in places] == [0, 1, 1, 2, 3, 4]
    assert [leaf_number(shape, place) for place in places] == [0, 1, 1, 2, 3, 4]
