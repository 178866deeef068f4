"""Schedules of windows and scans: other blocks give the same results, or are refused."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hloom.hlo.errors import ScheduleError
from hloom.hlo.evaluator import evaluate
from hloom.hlo.text.parser import parse
from hloom.numba_backend.choices import with_schedules
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.schedule import text
from hloom.numba_backend.schedule.steps import Order, Split, Unroll

import hloom
import hloom.numpy as jnp
from hloom import lax

Program = tuple[Callable[[Any], Any], tuple[int, ...], str, tuple[int, ...]]


def pooled(*window: int) -> Callable[[Any], Any]:
    return lambda x: lax.reduce_window(x, -np.inf, lax.max, window, window, "SAME")


PROGRAMS: dict[str, Program] = {
    "scans of rows": (lambda x: jnp.cumsum(x, 1), (37, 90), "out0[row, s] = sum along s", (1, 2, 3, 8)),
    "a scan in pieces": (lambda x: lax.cumsum(x, 0, reverse=True), (9000,), "out0[row, s] = sum along s", (1, 3, 8)),
    "scans of columns": (lambda x: jnp.cumsum(x, 1), (3, 20, 70), "out0[row, s, j] = sum along s", (1, 7, 64, 300)),
    "maxima of rows": (lambda x: lax.cummax(x, 1), (5, 700), "out0[row, s] = maximum along s", (16, 48, 1024)),
    "maxima in pieces": (lambda x: lax.cummin(x, 0), (9000,), "out0[row, s] = minimum along s", (16, 48, 1024)),
    "maxima of images": (pooled(1, 2, 3), (8, 21, 28), "out0[row, j] = maximum over k", (1, 2, 5, 9)),
    "long rows": (pooled(1, 3), (3, 9000), "out0[row, j] = maximum over k", (1, 40, 5000)),
    "a vector": (lambda x: lax.reduce_window(x, 0.0, lax.add, (5,), (1,), "SAME"), (9000,),
                 "out0[row, j] = sum over k", (1, 40, 5000)),
}  # fmt: skip


def numbers(*shape: int) -> np.ndarray:
    """Whole ones: sums are exact in any order."""
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(np.float32)


def compiled(name: str, schedules: Any = ()) -> Any:
    f, shape, _, _ = PROGRAMS[name]
    module = hloom.make_hlo(f)(numbers(*shape))
    return NumbaCompiler().compile(with_schedules(module, text.schedules_of_user(dict(schedules))))


def kernel_of(executable: Any) -> tuple[str, Any]:
    """The one kernel whose schedule can be changed."""
    ((name, kernel),) = [
        (n, k) for n, k in executable.kernels().items() if k.algorithm and not n.endswith((".sums", ".starts"))
    ]
    return name, kernel


def check(name: str, executable: Any, shown: object) -> None:
    f, shape, _, _ = PROGRAMS[name]
    x = numbers(*shape)
    for ours, expected in zip(executable.execute([x]), evaluate(hloom.make_hlo(f)(x), x), strict=True):
        np.testing.assert_array_equal(ours, expected, err_msg=str(shown))


@pytest.mark.parametrize("name", PROGRAMS)
def test_other_blocks_give_the_same_results(name: str) -> None:
    _, _, algorithm, sizes = PROGRAMS[name]
    kernel_name, kernel = kernel_of(compiled(name))
    assert kernel.algorithm == algorithm
    assert kernel_of(compiled(name, text.parse(f"{kernel}")))[1] == kernel, "a printed kernel is a schedule"
    first = next(step for step in kernel.schedule if getattr(step, "loop", "") != "piece")
    for size in random.Random(name).sample(sizes, 2):
        steps = tuple(replace(step, size=size) if step is first else step for step in kernel.schedule)
        executable = compiled(name, {kernel_name: steps})
        check(name, executable, steps)
        assert kernel_of(executable)[1].schedule == steps


@pytest.mark.parametrize("size", [2, 3, 16, None])
def test_steps_along_columns_are_made_together(size: int | None) -> None:
    """Each of them is read and written once; a conversion from f64 and one to f64 serve all."""
    name = "scans of columns"
    kernel_name, kernel = kernel_of(compiled(name))
    ((number, own),) = [(k, step) for k, step in enumerate(kernel.schedule) if isinstance(step, Split)]
    assert own == Split("s", "steps", 2, "rest")
    steps = [replace(step, size=size) if step is own and size else step for step in kernel.schedule]
    if size is None:
        del steps[number]
        steps = [Order("row", "block", "s", "j") if isinstance(s, Order) else s for s in steps]
        steps = [s for s in steps if not isinstance(s, Unroll)]
    executable = compiled(name, {kernel_name: tuple(steps)})
    check(name, executable, steps)
    found = str(kernel_of(executable)[1])
    body = found[found.index("for r in") : found.index("for r in range(n0 //") if size else None]
    assert (body.count("float32("), body.count("float64("), body.count("out0[")) == (1, 1, size or 1)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int8", "complex64"])
def test_only_sums_that_are_held_wider_are_made_in_steps(dtype: str) -> None:
    with hloom.enable_x64(dtype == "float64"):
        x = jnp.ones((9, 7), dtype)
        (kernel,) = hloom.jit(lambda x: jnp.cumsum(x, 0)).lower(x).compile().kernels().values()
    assert not any(isinstance(step, Split) for step in kernel.schedule)


ROWS_OR_PARTS = {
    "row by row": "Parallel(('row',))",
    "blocks of a row": "Split('j', 'b', 4, 'short')\nParallel(('row',))",
    "blocks of all rows": "Split('j', 'b', 4, 'short')\nOrder('b', 'row', 'j')\nSlice('j')",
    "groups of rows": "Part('row', 'g', size=3)\nParallel(('g',))",
}


@pytest.mark.parametrize("steps", ROWS_OR_PARTS)
def test_a_window_has_any_of_its_loops(steps: str) -> None:
    name = "maxima of images"
    kernel_name, _ = kernel_of(compiled(name))
    check(name, compiled(name, {kernel_name: ROWS_OR_PARTS[steps]}), steps)


def test_the_kernels_beside_show_a_schedule_that_stays() -> None:
    kernels = compiled("a scan in pieces").kernels()
    name = kernel_of(compiled("a scan in pieces"))[0]
    piece = "Part(dimension='s', loop='piece', size=1040)"
    sums, starts = (kernels[f"{name}.{word}"] for word in ("sums", "starts"))
    assert [k.algorithm for k in (sums, starts)] == [
        "sums0[row, piece] = sum over s", "sums0[row, piece] = sum along piece"
    ]  # fmt: skip
    assert {str(k.schedule[0]) for k in (sums, starts, kernels[name])} == {piece}
    check("a scan in pieces", compiled("a scan in pieces", {f"{name}.sums": sums.schedule}), sums)
    with pytest.raises(ScheduleError, match="its emitter fixes the order of its loops"):
        compiled("a scan in pieces", {f"{name}.sums": "Part('s', 'piece', size=520)\nParallel(('piece',))"})
    module = parse("""HloModule m
ge { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=GE }
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[40,20] parameter(0)
  y = f32[40,10] parameter(1)
  z = f32[] constant(0)
  ROOT s = f32[40,20] select-and-scatter(x, y, z), window={size=1x2 stride=1x2}, select=ge, scatter=add
}""")
    (scatter,) = NumbaCompiler().compile(module).kernels().values()
    assert (scatter.algorithm, *map(str, scatter.schedule)) == (
        "out[selected(k)] = sum over positions", "Slice(dimension='o0')"
    )  # fmt: skip


REFUSED: dict[str, tuple[str, str, str]] = {
    "another kind of block": ("scans of rows", "Split('row', 'g', 4, 'rest')", "a step such as Part(dimension='row'"),
    "a scan in parallel": ("scans of rows", "Part('row', 'g', size=4)\nParallel(('s',))", "does not fit these loops"),
    "too many rows": (
        "scans of rows", "Part('row', 'g', size=99)\nUnroll('row')\nParallel(('g',))", "99 rows are written out",
    ),
    "no whole vectors": ("maxima of rows", "Split('s', 'f', 40, 'short')\nParallel(('row',))", "no multiple of 16"),
    "too many steps": (
        "scans of columns", "Part('j', 'block', size=512)\nSplit('s', 'steps', 65, 'rest')\n"
        "Order('row', 'block', 'steps', 'j', 's')\nUnroll('s')\nParallel(('row', 'block'))",
        "65 steps are written out",
    ),
    "a large array": (
        "scans of columns",
        "Part('j', 'b', size=99999)\nOrder('row', 'b', 's', 'j')\nParallel(('row', 'b'))", "array of 99999 elements",
    ),
    "too long rows": ("long rows", "Part('row', 'g', size=3)\nParallel(('g',))", "not computed together, 3 at a time"),
    "a slice in one": ("long rows", "Slice('j')", "threads share it block by block"),
    "blocks of no size": (
        "a vector", "Split('j', 'b', <rows>, 'short')\nOrder('b', 'row', 'j')\nSlice('j')", "no Split of j",
    ),
    "blocks that shift": ("a vector", "Split('j', 'b', 64)\nParallel(('row',))", "does not fit these loops"),
    "no such loop": ("a vector", "Split('k', 'b', 64, 'short')", "no loop k: there are row, j"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_schedule_that_does_not_fit_is_refused(name: str) -> None:
    program, steps, reason = REFUSED[name]
    kernel_name, _ = kernel_of(compiled(program))
    with pytest.raises(ScheduleError, match=re.escape(reason)):
        compiled(program, {kernel_name: steps})
