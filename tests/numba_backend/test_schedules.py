"""Schedules: all steps keep the results of the algorithm; a step that would change them is refused."""

from __future__ import annotations

import ctypes
import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hloom.hlo.kernel_texts import KernelText
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.loops.expressions import ONE, Name, Number, call
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.statements import LoopProgram
from hloom.numba_backend.loops.writer import Writer, cast
from hloom.numba_backend.machine import compiling_for
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.store import default_store
from hloom.numba_backend.schedule.algorithm import Access, Algorithm, Dimension, Word
from hloom.numba_backend.schedule.apply import write
from hloom.numba_backend.schedule.nest import ScheduleError
from hloom.numba_backend.schedule.steps import (
    Accumulate,
    AnyOrder,
    Collect,
    Lanes,
    Order,
    Pack,
    Padded,
    Padding,
    Parallel,
    Partial,
    Schedule,
    Slice,
    Split,
    Step,
    Unroll,
)

import hloom
import hloom.numpy
from support.registers import WIDE

MOST_LANES = 16
X0, X1, OUT = (Name(name, "float32*") for name in ("x0", "x1", "out"))
PLUS_PRODUCT = Name("total", "float32") + Name("a", "float32") * Name("b", "float32")


class Case(NamedTuple):
    """An algorithm, its parameters, operands and result."""

    algorithm: Algorithm
    sizes: Mapping[str, int]
    operands: tuple[np.ndarray, np.ndarray]
    expected: np.ndarray
    tables: Mapping[str, np.ndarray] = {}


def algorithm(dimensions: str, reduced: str, *accesses: Access) -> Algorithm:
    counters = tuple(Dimension(d, Name(f"n_{d}"), d in reduced) for d in dimensions)
    return Algorithm("kernel", counters, accesses[:2], accesses[2], PLUS_PRODUCT, "float32", cast("float32", 0))


def whole_numbers(rnd: random.Random, *shape: int) -> np.ndarray:
    """Small ones: sums are exact in any order. Memory goes on after the last one, with NaN."""
    memory = np.full(math.prod(shape) + MOST_LANES, np.nan, np.float32)
    memory[: -MOST_LANES] = np.random.default_rng(rnd.randrange(10**6)).integers(-4, 5, math.prod(shape))
    return memory[: -MOST_LANES].reshape(shape)


def product(rnd: random.Random) -> Case:
    m, n, k = (rnd.choice([1, 2, 3, 5, 6, 7, 15, 16, 17, 33]) for _ in range(3))
    x = whole_numbers(rnd, m, k) if rnd.random() < 0.5 else whole_numbers(rnd, k, m).T
    y = whole_numbers(rnd, k, n) if rnd.random() < 0.5 else whole_numbers(rnd, n, k).T
    named = {f"{name}{d}": v.strides[d] // 4 for name, v in (("a", x), ("b", y)) for d in (0, 1)}
    a = Access("a", X0, (("i", Name("a0")), ("p", Name("a1"))))
    b = Access("b", X1, (("p", Name("b0")), ("j", Name("b1"))))
    c = Access("c", OUT, (("i", Name("n_j")), ("j", ONE)))
    return Case(algorithm("ijp", "p", a, b, c), {"n_i": m, "n_j": n, "n_p": k, **named}, (x, y), x @ y)


def product_of_words(rnd: random.Random) -> Case:
    """Of signed bytes, four in a word; the last word may have fewer."""
    m, n, k = (rnd.choice([1, 2, 3, 5, 6, 7, 15, 16, 17, 33]) for _ in range(3))
    x, y = (whole_numbers(rnd, *sizes).astype(np.int8) for sizes in ((m, k), (k, n)))
    words = {s: Word("uint32", "p", 4, Name(s), Name("terms"), flips=s == "a1") for s in ("a1", "b0")}
    a = Access("a", Name("x0", "int8*"), (("i", Name("terms")), ("p", Name("a4"))), word=words["a1"])
    b = Access("b", Name("x1", "int8*"), (("p", Name("b4")), ("j", ONE)), word=words["b0"])
    c = Access("c", Name("out", "int32*"), (("i", Name("n_j")), ("j", ONE)))
    update = call("dot_bytes", *(Name(name, "uint32") for name in ("total", "a", "b")))
    found = replace(algorithm("ijp", "p", a, b, c), update=update, total_type="uint32", zero=cast("uint32", 0))
    sizes = {"n_i": m, "n_j": n, "n_p": -(-k // 4), "terms": k, "a1": 1, "a4": 4, "b0": n, "b4": 4 * n}
    return Case(found, sizes, (x, y), x.astype(np.int32) @ y.astype(np.int32))


def convolution(rnd: random.Random) -> Case:
    """Channels last, without padding: x[h + s, w + t, i] * y[s, t, i, o]."""
    h, w, i, o = rnd.choice([1, 3]), rnd.choice([1, 5, 9]), rnd.choice([1, 3]), rnd.choice([1, 7, 17])
    s, t = rnd.choice([1, 2]), rnd.choice([1, 3])
    x, y = whole_numbers(rnd, h + s - 1, w + t - 1, i), whole_numbers(rnd, s, t, i, o)
    named = {"x0_": x.strides[0] // 4, "y0": y.strides[0] // 4, "y1": y.strides[1] // 4, "c0": w * o}
    a = Access("a", X0, (("h", Name("x0_")), ("w", Name("n_i")), ("s", Name("x0_")), ("t", Name("n_i")), ("i", ONE)))
    b = Access("b", X1, (("s", Name("y0")), ("t", Name("y1")), ("i", Name("n_o")), ("o", ONE)))
    c = Access("c", OUT, (("h", Name("c0")), ("w", Name("n_o")), ("o", ONE)))
    counts = {"n_h": h, "n_w": w, "n_o": o, "n_s": s, "n_t": t, "n_i": i}
    expected = sum(np.einsum("hwi,io->hwo", x[a : a + h, b : b + w], y[a, b]) for a in range(s) for b in range(t))
    return Case(algorithm("hwosti", "sti", a, b, c), {**counts, **named}, (x, y), np.asarray(expected))


def with_tables(rnd: random.Random) -> Case:
    """The same, where tables say how far away positions and elements of the window are."""
    h, w, i, o = rnd.choice([1, 3]), rnd.choice([1, 5, 9]), rnd.choice([1, 3]), rnd.choice([1, 7, 17])
    s, t = rnd.choice([1, 2]), rnd.choice([1, 3])
    x, y = whole_numbers(rnd, h + s - 1, w + t - 1, i), whole_numbers(rnd, s * t, i, o)
    rows, taps = (
        (np.arange(a)[:, None] * x.strides[0] // 4 + np.arange(b) * i).reshape(-1) for a, b in ((h, w), (s, t))
    )
    tables = {"rows": rows, "taps": taps}
    a = Access("a", X0, (("p", Name("rows", "int64*")), ("q", Name("taps", "int64*")), ("i", ONE)))
    b = Access("b", X1, (("q", Name("y0")), ("i", Name("n_o")), ("o", ONE)))
    c = Access("c", OUT, (("p", Name("n_o")), ("o", ONE)))
    sizes = {"n_p": h * w, "n_o": o, "n_q": s * t, "n_i": i, "y0": i * o}
    places = np.take(x.reshape(-1), rows[:, None, None] + taps[:, None] + np.arange(i))
    return Case(algorithm("poqi", "qi", a, b, c), sizes, (x, y), np.einsum("pqi,qio->po", places, y), tables)


def _shuffled(names: list[str], rnd: random.Random) -> list[str]:
    return rnd.sample(names, len(names))


def random_schedule(case: Case, rnd: random.Random) -> Schedule:
    """Splits, an order, lanes, copies: most of it fits."""
    steps: list[Step] = []
    outer: dict[str, str] = {}
    fixed: dict[str, int] = {}
    for d in case.algorithm.dimensions:
        size = rnd.choice([2, 3, 4, 8, 16])
        tail = rnd.choice(["rest", "short"] if d.is_reduced else ["shift", "rest", "short"])
        if rnd.random() < 0.6 and (tail != "shift" or case.sizes[f"n_{d.name}"] >= size):
            steps.append(Split(d.name, f"{d.name}_outer", size, tail, count=f"{d.name}_count"))
            outer[d.name], fixed[d.name] = f"{d.name}_outer", size
    results = [d.name for d in case.algorithm.dimensions if not d.is_reduced]
    sums = [d.name for d in case.algorithm.dimensions if d.is_reduced]
    inside = [name for name in results if name in fixed and rnd.random() < 0.8]
    outside = [name for name in [*results, *(outer[r] for r in results if r in outer)] if name not in inside]
    parts = [outer[name] for name in sums if name in outer]
    more = [name for name in [*sums, *parts] if rnd.random() < 0.3 and (name not in outer or outer[name] in parts)]
    outside += [name for name in more if name not in outer]
    inside += [name for name in [*sums, *parts] if name not in outside]
    order = [*_shuffled(outside, rnd), *_shuffled(inside, rnd)]
    of_sums = [x for x in order[: len(outside)] if x.removesuffix("_outer") in sums]
    collects = rnd.random() < 0.4 and len(of_sums) < len(outside)
    if collects:
        order = [*(x for x in order if x not in of_sums)]
        order[len(outside) - len(of_sums) : len(outside) - len(of_sums)] = of_sums
    for name, around in outer.items():
        if order.index(name) < order.index(around):
            i, j = order.index(name), order.index(around)
            order[i], order[j] = around, name
    whole = [name for name in results if name not in outer]
    if whole:
        first = rnd.choice(whole)
        order.remove(first)
        order.insert(0, first)
    steps.append(Order(*order))
    vector = rnd.choice([*inside, ""])
    if vector in fixed:
        steps.append(Lanes(vector))
    short = {s.loop for s in steps if isinstance(s, Split) and s.tail == "short"}
    is_odd = rnd.random() < 0.05  # mostly refused
    written_out = [name for name in fixed if name in inside and name != vector]
    for name in written_out:
        if name not in short or is_odd or collects:
            steps += [Unroll(name), *([Partial(name)] if name in sums and rnd.random() < 0.5 else [])]
    at = order[len(outside) - 1] if rnd.random() < 0.9 else rnd.choice(order)
    steps.append(Accumulate(at, adds=rnd.random() < 0.5 or collects))
    if collects:
        steps.append(Collect(order[len(outside) - len(of_sums) - 1], "totals"))
    steps += [Padded(access.name) for access in case.algorithm.operands if rnd.random() < 0.3]
    has_words = any(access.word for access in case.algorithm.operands)
    if rnd.random() < 0.3 and not has_words:
        steps.append(AnyOrder())
    for access in case.algorithm.operands:
        around = rnd.choice(["", *order[: order.index(at) + 1]])
        inner = order[order.index(around) + 1 :] if around else order
        copied = [x for x in inner if access.has(x.removesuffix("_outer"))]
        if copied and (has_words or rnd.random() < 0.5):
            steps.append(
                Pack(
                    access.name,
                    f"packed_{access.name}",
                    around,
                    tuple((x, fixed.get(x) or case.sizes[f"n_{x.removesuffix('_outer')}"]) for x in inside),
                )
            )
    steps.append(Slice(rnd.choice(results)) if rnd.random() < 0.4 else Parallel((order[0],), ("above",)))
    return tuple(steps)


def run(case: Case, schedule: Schedule, rnd: random.Random) -> np.ndarray:
    """The result, computed in two pieces."""
    writer = Writer()
    write(case.algorithm, schedule, writer)
    names = ("x0", "x1", *case.tables, "out", *case.sizes)
    text = to_text(LoopProgram("kernel", ("lo", "hi", *names), writer.body()))
    tables = [("pointer", "s64")] * len(case.tables)
    of_operands, of_result = ("f32", "f32") if case.expected.dtype == np.float32 else ("s8", "s32")
    kinds = (
        *[("pointer", of_operands)] * 2, *tables, ("pointer", of_result), *[("size", "s64")] * len(case.sizes)
    )  # fmt: skip
    address = default_store().get(KernelSource("kernel", text, kinds))  # type: ignore[arg-type]
    out = np.full(case.expected.shape, 7, case.expected.dtype)
    arrays = (*case.operands, *case.tables.values(), out)
    arguments = np.array([*(v.ctypes.data for v in arrays), *case.sizes.values()], np.int64)
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(address)
    shared = next(
        s.dimension if isinstance(s, Slice) else s.loops[0] for s in schedule if isinstance(s, Slice | Parallel)
    )
    turns = case.sizes[f"n_{shared}"]
    cut = rnd.randrange(turns + 1)
    kernel(0, cut, arguments.ctypes.data)
    kernel(cut, turns, arguments.ctypes.data)
    return out


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [product, product_of_words, convolution, with_tables])
def test_schedules_do_not_change_results(make: Any, seed: int) -> None:
    rnd = random.Random(seed)
    done = refused = 0
    while done < 12:
        case = make(rnd)
        if rnd.random() < 0.3:  # to the 7 that `run` puts there
            case = case._replace(algorithm=replace(case.algorithm, adds=True), expected=case.expected + 7)
        schedule = random_schedule(case, rnd)
        try:
            result = run(case, schedule, rnd)
        except ScheduleError:
            refused += 1
            continue
        done += 1
        np.testing.assert_array_equal(result, case.expected, err_msg=f"{schedule}\n{case.sizes}")
    assert refused < 80 * done


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("lanes", [(), (Lanes("j"),)])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("is_literal", [False, True])
def test_blocks_of_results_inside_of_the_parts_of_a_sum(
    is_literal: bool, seed: int, lanes: Schedule, wide: bool
) -> None:
    """Of as many rows as the argument says, or, if the size is a literal, of one block."""
    rnd = random.Random(seed)
    case = product(rnd)
    if is_literal:
        i, *others = case.algorithm.dimensions
        rows = case.operands[0][:3]
        fixed = replace(case.algorithm, dimensions=(replace(i, extent=Number(len(rows))), *others))
        case = Case(fixed, case.sizes, (rows, case.operands[1]), case.expected[:3])
    schedule: Schedule = (
        Slice("j"), Split("j", "column", 16, "short", count="some_j"), Split("i", "row", 3, "short", count="some"),
        Split("p", "k0", 4, "short", count="some_p"), Split("p", "k1", 2, "short", count="some_q"),
        Order("column", "k0", "row", "k1", "p", "i", "j"), Unroll("i"), *(lanes or (Unroll("j"),)),
        Accumulate("k1", adds=True), Collect("column", "totals", wide, most=11),
    )  # fmt: skip
    np.testing.assert_array_equal(run(case, schedule, rnd), case.expected, err_msg=f"{case.sizes}")


TILES: Schedule = (
    Slice("j"), Split("j", "column", 16, "short"), Split("i", "row", 6), Order("column", "row", "p", "i", "j"),
    Unroll("i"), Lanes("j"), Accumulate("row"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ((Split("p", "k0", 4, "shift"),), "p is summed over: elements of a shifted block would count twice"),
        ((Order("i", "j"),), "an order has all loops once: i, j, p"),
        ((Unroll("i"),), "i has no literal number of iterations"),
        (
            (Slice("i"), Split("p", "k0", 4, "short"), Split("p", "parts", 2, "rest"),
             Order("i", "j", "k0", "parts", "p"), Lanes("p"), Accumulate("k0")),
            "iterations of p have sums of their own, which cannot begin with the result",
        ),
        (
            (Slice("i"), Split("p", "k0", 4, "short"), Split("p", "parts", 2, "rest"),
             Order("i", "j", "k0", "parts", "p"), Unroll("p"), Partial("p"), Accumulate("k0")),
            "iterations of p have sums of their own, which cannot begin with the result",
        ),
        (
            (Slice("i"), Split("p", "parts", 6, "rest"), Order("i", "j", "parts", "p"), Lanes("p"), Accumulate("j")),
            "lanes along p, a sum, are added in halves: they are a power of two",
        ),
        (
            (Slice("i"), Split("p", "parts", 4, "short"), Order("i", "j", "parts", "p"), Lanes("p"), Accumulate("j"),
             Padded("b")),
            "lanes along p, a sum, are all added: none has anything else",
        ),
        ((*TILES, Partial("i")), "i is no written out loop of a sum: it has no partial sums"),
        (
            (Slice("i"), Split("p", "k0", 4, "short"), Order("i", "j", "k0", "p"), Accumulate("k0"),
             Padding("p", "i", "b")),
            "k0 may have no iteration, since terms of padding are left out",
        ),
        ((Split("i", "row", 6, "short"), Unroll("i")), "the last block of row is short: i cannot be written out"),
        ((Split("i", "row", 6), Order("i", "row", "j", "p")), "i goes through a block of row, and is outside of it"),
        ((Order("j", "i", "p"), Parallel(("i",))), "the outermost loops are parallel, not i"),
        ((Order("p", "i", "j"), Accumulate("j"), Parallel(("p",))), "p is no part of the result"),
        ((Order("i", "p", "j"), Accumulate("i"), Parallel(("i",))), "results along j do not lie in registers"),
        ((Order("i", "j", "p"), Accumulate("i"), Parallel(("i", "j"))), "sums are kept inside of the parallel loops"),
        (
            (Split("p", "k0", 4, "short"), Split("i", "row", 6), Order("j", "k0", "row", "p", "i"), Unroll("i"),
             Accumulate("row"), Parallel(("j",))),
            "row shifts inside of a part of the sum: terms would count twice",
        ),
        (
            (Split("p", "k0", 4, "short"), Order("j", "k0", "i", "p"), Accumulate("k0", adds=True),
             Collect("j", "totals"), Parallel(("j",))),
            "results along i do not lie in registers",
        ),
        (
            (Split("p", "k0", 4, "short"), Order("j", "k0", "i", "p"), Accumulate("i", adds=True),
             Collect("j", "totals"), Parallel(("j",))),
            "between j and i lie the parts of a sum, and no other loops",
        ),
        (
            (Split("p", "k0", 4, "short"), Order("i", "j", "k0", "p"), Accumulate("k0"), Collect("j", "totals"),
             Parallel(("i",))),
            "an iteration of j has sums that are added up, part after part",
        ),
        ((Collect("j", "totals", most=0),), "totals has room for 0 blocks, not for one"),
        (
            (Split("p", "k0", 4, "short"), Order("j", "k0", "i", "p"), Accumulate("i", adds=True),
             Collect("j", "totals", most=4), Parallel(("j",))),
            "a block of i is written out, and the last one is short: it is collected",
        ),
        (
            (Split("p", "k0", 4, "short"), Split("i", "rows", 6, "short"), Split("i", "row", 2, "short"),
             Order("rows", "j", "k0", "row", "p", "i"), Unroll("i"), Accumulate("row", adds=True),
             Collect("j", "totals", most=4), Parallel(())),
            "has all blocks of row, or those of a part",
        ),
        (
            (Split("p", "k0", 4, "rest"), Order("j", "i", "k0", "p"), Accumulate("k0"), Parallel(("j",))),
            "parts of the sum over k0 are whole, or the last one is short",
        ),
        ((*TILES, Pack("b", "panel", "column", (("j", 16),))), "panel has what p, j read of b, not j"),
        ((*TILES, Pack("b", "panel", "column", (("p", 256), ("j", 8)))), "j has 16 iterations, and panel room for 8"),
        ((*TILES, Pack("b", "panel", "p", (("j", 16),))), "panel is copied while sums are made"),
        (
            (Order("i", "j", "p"), Accumulate("j"), Parallel(("i",)), Pack("b", "all", "", (("p", 8), ("j", 8)))),
            "all is copied for all loops: there is a slice of a dimension, and no band",
        ),
        ((Slice("j"), Accumulate("q")), "no loop q: there are i, j, p"),
        ((Slice("p"),), "p is summed over: threads do not share a sum"),
        ((Split("i", "row", 6), Slice("i")), "a slice may have fewer elements than a block of row: it cannot shift"),
        ((Slice("i"), Parallel(("i",)), Accumulate("j")), "threads share the iterations of parallel loops, or a slice"),
    ],
)  # fmt: skip
def test_steps_that_would_change_results_are_refused(steps: Schedule, reason: str) -> None:
    with pytest.raises(ScheduleError, match=reason):
        write(product(random.Random(0)).algorithm, steps, Writer())


@pytest.mark.usefixtures("narrow_registers")
def test_kernels_show_their_schedules() -> None:
    x = hloom.numpy.ones((300, 64))
    compiled = hloom.jit(lambda x, y: x @ y).lower(x, x.T).compile()
    (text,) = compiled.kernels().values()
    assert isinstance(text, KernelText)
    assert str(text.algorithm) == "c[i, j] = sum over p: total + a[i, p] * b[p, j]"
    assert Accumulate("row") in text.schedule
    assert Lanes("j") in text.schedule
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("#")]
    assert "# c[i, j] = sum over p: total + a[i, p] * b[p, j]" in lines
    assert "# Split(loop='i', outer='row', size=6, tail='shift')" in lines
    assert lines.index("# Lanes(loop='j')") < lines.index("# Accumulate(at='row', adds=False)")


@pytest.mark.usefixtures("narrow_registers")
def test_convolutions_show_their_schedules() -> None:
    x, w = hloom.numpy.ones((2, 3, 20, 20)), hloom.numpy.ones((8, 3, 3, 3))
    compiled = hloom.jit(lambda x, w: hloom.lax.conv(x, w, (1, 1), "SAME")).lower(x, w).compile()
    (text,) = (t for t in compiled.kernels().values() if isinstance(t, KernelText) and t.algorithm)
    left, right = str(text.algorithm).split(" = ")
    assert left == "c[n, s, g, o, q in lines]"
    assert right == "sum over i, t: total + a[g, o, i, t] * b[n, s, g, i, t, q]"
    assert {Lanes("q"), Padding("t", "s", "a"), Collect("column", "totals", most=16)} <= set(text.schedule)


def test_inputs_of_a_convolution_are_multiplied_piece_by_piece() -> None:
    """All outputs by one piece, which stays in the first-level cache, before the next piece."""
    x, w = hloom.numpy.ones((2, 130, 20, 20)), hloom.numpy.ones((24, 130, 3, 3))
    compiled = hloom.jit(lambda x, w: hloom.lax.conv(x, w, (1, 1), "SAME")).lower(x, w).compile()
    (text,) = (t for t in compiled.kernels().values() if isinstance(t, KernelText) and t.algorithm)
    (order,) = (step.loops for step in text.schedule if isinstance(step, Order))
    assert order[order.index("column") :] == ("column", "i0", "row", "i", "t", "o", "q")


def test_lanes_of_collected_sums_are_added_in_a_loop() -> None:
    """LLVM took half of its time for a gradient's 48 reductions, where each was written out."""
    x, w, y = (hloom.numpy.ones(shape) for shape in ((2, 8, 20, 20), (16, 8, 3, 3), (2, 16, 20, 20)))
    gradient = hloom.make_hlo(
        lambda x, w, y: hloom.vjp(lambda w: hloom.lax.conv(x, w, (1, 1), "SAME"), w)[1](y)
    )(x, w, y)  # fmt: skip
    with compiling_for(WIDE):
        (text,) = (t for t in NumbaCompiler().compile(gradient).kernels().values() if "sums3_5" in t)
    assert text.count("reduce_add(") == 1


def test_a_schedule_is_data() -> None:
    assert Split("i", "row", 6, start="i") == Split("i", "row", 6, start="i")
    assert repr(Split("i", "row", 6, start="i")) == "Split(loop='i', outer='row', size=6, tail='shift')"
    assert math.prod(most for _, most in Pack("b", "panel", "column", (("p", 256), ("j", 16))).layout) == 4096
    assert hash(TILES) == hash(tuple(TILES))
    assert Number(6) == Number(6)
