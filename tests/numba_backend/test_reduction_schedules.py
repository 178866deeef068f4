"""Schedules of fused computations with reductions: printed, given, changed at random, refused."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hloom.hlo import parse
from hloom.hlo.errors import ScheduleError
from hloom.hlo.evaluator import evaluate
from hloom.numba_backend.choices import with_schedules
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.emit.nest_across import AcrossNest, Tiles
from hloom.numba_backend.emit.nest_schedule import (
    Blocks,
    StageBlocks,
    outer_loop,
    rows_of,
    search_loop,
    stage_loops,
    steps_of,
    suffix,
)
from hloom.numba_backend.emit.nest_stages import StagedNest
from hloom.numba_backend.policy import reductions as policy
from hloom.numba_backend.schedule import text
from hloom.numba_backend.schedule.steps import Collect, Part, Schedule, Split, Step, size_of

import hloom
import hloom.numpy as jnp


def compiled(f: Callable[..., Any], inputs: tuple[np.ndarray, ...], schedules: Any = ()) -> Any:
    module = module_of(f, inputs)
    return NumbaCompiler().compile(with_schedules(module, text.schedules_of_user(dict(schedules))))


def module_of(f: Callable[..., Any], inputs: tuple[np.ndarray, ...]) -> Any:
    with hloom.enable_x64(True):
        return hloom.make_hlo(f)(*inputs)


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Whole ones: sums are exact in any order."""
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(dtype)


def centred(axis: int) -> Callable[..., Any]:
    """Two stages, and a result with all elements."""

    def f(x: Any) -> Any:
        y = x - x.max(axis, keepdims=True)
        return y + jnp.abs(y).sum(axis, keepdims=True)

    return f


def rows_then_columns(x: Any, w: Any) -> Any:
    """Columns of the second stage, and a result of each row."""
    y = (x * w).sum(1)
    return y, (x * (y % 5)[:, None]).sum(0)


def with_all_elements(x: Any) -> Any:
    """Columns and all elements of the second stage."""
    y = x - x.max(1, keepdims=True)
    return y, y.sum(0)


def squares(x: Any, y: Any) -> Any:
    return ((x[:, None] - y[None]) ** 2).sum(-1)


def from_the_largest(x: Any, y: Any) -> Any:
    """Two stages with lanes."""
    z = x[:, None] * y[None]
    return jnp.abs(z - z.max(-1, keepdims=True)).sum(-1)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "rows": (lambda x: x.sum(1) * 2, (numbers(7, 5000),)),
    "groups of rows": (lambda x, w: (x * w).sum(1), (numbers(24, 500), numbers(500))),
    "rows of doubles": (lambda x: x.sum(1), (numbers(3, 300, dtype=np.float64),)),
    "maxima of rows": (lambda x: jnp.abs(x).max(1), (numbers(7, 300),)),
    "rows and all elements": (centred(1), (numbers(9, 50),)),
    "columns": (lambda x: x.sum(0), (numbers(37, 1100),)),
    "long columns": (lambda x: x.sum(0) + 1, (numbers(9000, 3),)),
    "columns and all elements": (centred(0), (numbers(21, 130),)),
    "in the middle": (lambda x: x.sum(1), (numbers(3, 50, 70),)),
    "two dimensions": (lambda x: x.sum((0, 2)), (numbers(5, 7, 20),)),
    "a number": (lambda x: (x * x).sum(), (numbers(20_000),)),
    "whole numbers": (lambda x: x.sum(0), (numbers(37, 60, dtype=np.int32),)),
    "places": (lambda x: (x.argmax(1), x.max(1)), (numbers(5, 700),)),
    "places of results": (lambda x: (x * 1.5 - 1).argmin(1), (numbers(5, 700),)),
    "rows beside columns": (lambda x: (x.sum(1), x.sum(0)), (numbers(300, 40),)),
    "rows, then columns": (rows_then_columns, (numbers(150, 40), numbers(40))),
    "columns beside all elements": (with_all_elements, (numbers(150, 40),)),
    "distances": (squares, (numbers(40, 30), numbers(50, 30))),
    "distances in stages": (from_the_largest, (numbers(20, 30), numbers(50, 30))),
}  # fmt: skip


@pytest.fixture
def nests(monkeypatch: pytest.MonkeyPatch) -> list[StagedNest]:
    """The nests for which the policy has chosen a schedule, since the fixture."""
    seen: list[StagedNest] = []

    def noted(choose: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def choose_and_note(nest: Any) -> Any:
            seen.append(nest)
            return choose(nest)

        return choose_and_note

    for name in ("_blocks", "_tiles"):
        monkeypatch.setattr(policy, name, noted(getattr(policy, name)))
    return seen


def random_blocks(nest: StagedNest, rnd: random.Random) -> Blocks:
    """Blocks of any sizes."""
    columns = None
    if nest.inner and (nest.shares_columns or rnd.random() < 0.5):
        columns = Split(policy.loop_variable(nest.inner[0]), "part", rnd.choice([1, 8, 50, 2000]), "short")
    stages = []
    for stage in range(nest.stages + 1):
        loops, end = stage_loops(nest, stage), suffix(stage)
        sums = rows = searched = None
        if nest.has_main_loop(stage):
            if not nest.writes_elements(stage) and rnd.random() < 0.6:
                rows = Split(loops[-1], f"few{end}", rnd.choice([1, 2, 3, 8]), "rest")
            if rnd.random() < 0.6:
                size = rnd.choice([1, 5, 64]) * (int(rows.size) if rows else 1)  # type: ignore[arg-type]
                sums = Split(loops[0], f"many{end}", size, "short")
        if nest.searched_at(stage):
            searched = Split(search_loop(nest, stage), f"found{end}", rnd.choice([1, 7, 64, 1000]), "short")
        stages.append(StageBlocks(sums, rows, searched))
    is_collected = any(own.sums for own in stages) and rnd.random() < 0.7
    has_rows = rows_of(nest) and rnd.random() < 0.6
    together = Split(rows_of(nest), "several", rnd.choice([1, 2, 3, 8]), "rest") if has_rows else None
    if together and not nest.columns and nest.domain.shape.dimensions[nest.parts[0]] % size_of(together):
        together = None  # no whole groups
    collect = Collect(outer_loop(nest, columns, together), "all", rnd.random() < 0.5) if is_collected else None
    return Blocks(tuple(stages), columns, collect, together)


def random_tiles(nest: AcrossNest, rnd: random.Random) -> Tiles:
    row, lane, term = nest.loop_names()
    lanes = rnd.choice([4, 8, 32])
    return Tiles(
        Part(row, "block", size=rnd.choice([0, 7, 30])), Part(lane, "strip", size=40),
        Split(lane, "vector", lanes, "shift"), Split(term, "some", rnd.choice([5, 30, 64]), "short"),
        Split(row, "few", rnd.choice([1, 3, 8]), "rest"),
    )  # fmt: skip


def steps_for(nest: StagedNest, rnd: random.Random) -> Schedule:
    if isinstance(nest, AcrossNest):
        return nest.steps(random_tiles(nest, rnd))
    return steps_of(nest, random_blocks(nest, rnd))


def kernel_of(executable: Any) -> tuple[str, Any]:
    """The one kernel whose schedule has loops."""
    ((name, kernel),) = [(n, k) for n, k in executable.kernels().items() if k.algorithm]
    return name, kernel


def check(f: Callable[..., Any], inputs: tuple[np.ndarray, ...], executable: Any, shown: object) -> None:
    found = executable.execute(inputs)
    for ours, expected in zip(found, evaluate(module_of(f, inputs), *inputs), strict=True):
        np.testing.assert_array_equal(ours, expected, err_msg=str(shown))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
@pytest.mark.parametrize("name", PROGRAMS)
def test_other_blocks_give_the_same_results(name: str, seed: int, nests: list[StagedNest]) -> None:
    rnd, (f, inputs) = random.Random(f"{name} {seed}"), PROGRAMS[name]
    printed = compiled(f, inputs)
    kernel_name, _ = kernel_of(printed)
    check(f, inputs, printed, "as the policy says")
    for _ in range(3):
        steps = steps_for(nests[0], rnd)
        executable = compiled(f, inputs, {kernel_name: steps})
        check(f, inputs, executable, text.to_text({kernel_name: steps}))
        assert sorted(map(str, kernel_of(executable)[1].schedule)) == sorted(map(str, steps)), "it is printed"


def random_change(steps: Schedule, rnd: random.Random) -> Schedule:
    """A step less, or another one: mostly refused."""
    found: list[Step] = list(steps)
    place = rnd.randrange(len(found))
    size = rnd.choice([1, 2, 6, 64, 5000])
    match rnd.randrange(4), found[place]:
        case 0, _:
            del found[place]
        case _, Split() as split:
            found[place] = replace(split, size=size, tail=rnd.choice([split.tail, "rest", "short", "shift"]))
        case _:
            found.insert(place, Split(rnd.choice("ijk"), "new", size, rnd.choice(["short", "rest"])))
    return tuple(found)


@pytest.mark.parametrize("name", PROGRAMS)
def test_random_changes_are_refused_or_right(name: str) -> None:
    rnd, (f, inputs) = random.Random(name), PROGRAMS[name]
    kernel_name, kernel = kernel_of(compiled(f, inputs))
    done = 0
    for _ in range(30):
        steps = random_change(kernel.schedule, rnd)
        try:
            executable = compiled(f, inputs, {kernel_name: steps})
        except ScheduleError:
            continue
        done += 1
        check(f, inputs, executable, text.to_text({kernel_name: steps}))
        if done == 2:
            break


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_printed_schedule_gives_the_same_kernel(name: str) -> None:
    f, inputs = PROGRAMS[name]
    kernel_name, kernel = kernel_of(compiled(f, inputs))
    _, again = kernel_of(compiled(f, inputs, text.parse(f"{kernel}")))
    assert again == kernel and again.schedule == kernel.schedule
    new = tuple(kernel.schedule[::-1])  # the text says what the kernel has, in one order
    if len(new) > 1 and not any(isinstance(step, Split) for step in new):
        _, turned = kernel_of(compiled(f, inputs, {kernel_name: new}))
        assert turned == kernel


ALGORITHMS = {
    "rows": "acc0[i] = sum over j, out[i]",
    "rows and all elements": "acc0[i] = maximum over j, acc1[i] = sum over j_1, out[i, j_2]",
    "columns": "out[j] = sum over i",
    "two dimensions": "out[j] = sum over i, k",
    "a number": "out[] = sum over i",
    "rows beside columns": "out0[i] = sum over j, out1[j] = sum over i",
    "distances": "out[i, j] = sum over k",
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_kernels_say_what_they_compute(name: str) -> None:
    _, kernel = kernel_of(compiled(*PROGRAMS[name]))
    assert kernel.algorithm == ALGORITHMS[name]
    lines = [line.strip() for line in kernel.splitlines() if line.startswith("    # ")]
    assert lines == [f"# {ALGORITHMS[name]}", *(f"# {step}" for step in kernel.schedule)]


REFUSED: dict[str, tuple[str, str, str]] = {
    "a sum that shifts": ("rows", "Split('j', 'b', 64)", "would count twice"),
    "another result": ("rows", "Slice('j')", "j is summed over: threads do not share a sum"),
    "threads that share a sum": ("rows", "Parallel(('i', 'j'))", "j is no part of the result's dimensions"),
    "no such loop": ("rows", "Split('k', 'b', 64, 'short')", "there are i, j"),
    "the loop of no stage": ("rows and all elements", "Split('j_3', 'b', 4, 'short')", "there are i, j, j_1, j_2"),
    "one name twice": ("rows", "Split('j', 'i', 64, 'short')", "i is the name of two things"),
    "no such step": ("rows", "AnyOrder()", "they have no such step"),
    "sums that are kept elsewhere": ("rows", "Accumulate('j')\nParallel(('i',))", "does not fit these loops: Acc"),
    "an order": ("rows", "Order('j', 'i')", "Order(loops=('j', 'i')) does not fit"),
    "nothing to share": ("rows", "Accumulate('i')", "these loops also have Parallel(loops=('i',))"),
    "no blocks of columns": ("columns", "Accumulate('j')\nSlice('j')", "threads share it block by block"),
    "blocks of columns that shift": ("columns", "Split('j', 'start', 64)\nSlice('j')", "cannot shift"),
    "groups that cross blocks": (
        "columns", "Split('j', 's', 64, 'short')\nSplit('i', 'b', 6, 'short')\nSplit('i', 'r', 4, 'rest')",
        "blocks of 6 elements are no multiple of 4",
    ),
    "too many at once": (
        "columns", "Split('j', 's', 64, 'short')\nSplit('i', 'r', 99, 'rest')", "99 elements are written out, 64 at",
    ),
    "elements that are written": (
        "rows and all elements", "Split('j_2', 'r', 4, 'rest')", "an iteration of j_2 also writes elements",
    ),
    "groups that are not whole": ("rows", "Split('i', 'g', 4, 'rest')", "the rows along i are no whole groups of 4"),
    "no blocks of a search": ("places", "Accumulate('i')", "no Split of j_search says how long the blocks are"),
    "a search in a large array": (
        "places of results", "Split('j_search', 's', 99999, 'short')\nAccumulate('i')\nParallel(('i',))",
        "a local array of 99999 elements",
    ),
    "lanes along a sum": ("distances", "Split('k', 'v', 8, 'short')\nLanes('k')", "results along k are no vectors"),
    "lanes where there are none": ("rows", "Split('i', 'v', 8)\nLanes('i')", "no loop has lanes"),
    "lanes without panels": ("distances", "Split('j', 'v', 8)\nLanes('j')", "with lanes along j there is a Part of i"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_schedule_that_does_not_fit_is_refused(name: str) -> None:
    program, steps, reason = REFUSED[name]
    f, inputs = PROGRAMS[program]
    kernel_name, _ = kernel_of(compiled(f, inputs))
    with pytest.raises(ScheduleError, match=re.escape(reason)):
        compiled(f, inputs, {kernel_name: steps})


def test_tiles_of_an_array_are_the_blocks() -> None:
    """Blocks around the loop over tiles would go through all of them again."""
    module = parse("""HloModule m
        add { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = f32[] add(a, b) }
        ENTRY e { x = f32[12,16]{1,0:T(4,8)} parameter(0)
          zero = f32[] constant(0)
          ROOT sums = f32[16] reduce(x, zero), dimensions={0}, to_apply=add }""")
    name, kernel = kernel_of(NumbaCompiler().compile(module))
    given = text.schedules_of_user({name: (Split("j", "start", 8, "short"), *kernel.schedule)})
    with pytest.raises(ScheduleError, match="the loops go through the tiles of an array"):
        NumbaCompiler().compile(with_schedules(module, given))


def test_a_mask_stays() -> None:
    def f(x: Any) -> Any:
        return hloom.nn.softmax(jnp.where(jnp.tril(jnp.ones(x.shape, bool)), x, -jnp.inf))

    inputs = (numbers(200, 200),)
    name, kernel = kernel_of(compiled(f, inputs))
    with pytest.raises(ScheduleError, match="elements along j_1 are left out by their position"):
        compiled(f, inputs, {name: "\n".join(map(str, (Split("j_1", "b", 64, "short"), *kernel.schedule)))})


def test_distances_row_by_row_and_rows_with_lanes() -> None:
    """Lanes or not: the steps say which nest it is."""
    f, inputs = PROGRAMS["distances"]
    name, lanes = kernel_of(compiled(f, inputs))
    by_rows = compiled(f, inputs, {name: "Accumulate('j')\nParallel(('i', 'j'))"})
    check(f, inputs, by_rows, "row by row")
    assert "panel0" in lanes and "panel0" not in kernel_of(by_rows)[1]
    for terms in (30, 9):  # the number of terms is an argument, or in the text
        few = (numbers(10, terms), numbers(12, terms))  # the policy goes row by row
        name, rows = kernel_of(compiled(f, few))
        steps = [str(step).replace("16", "8").replace("128", "4") for step in lanes.schedule]
        found = compiled(f, few, {name: "\n".join(steps)})
        check(f, few, found, steps)
        assert "panel0" in kernel_of(found)[1] and "panel0" not in rows
        with pytest.raises(ScheduleError, match="a local array of 24000 elements"):
            compiled(f, few, {name: "\n".join(step.replace("=4,", "=3000,").replace("4)", "3000)") for step in steps)})
