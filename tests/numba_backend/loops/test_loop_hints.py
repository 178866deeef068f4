"""Which short loops LLVM vectorises before it unrolls them, and that it does."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest
from hloom.numba_backend.runtime import dialect
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.llvm_backend import optimise, widens_straight_lines

import hloom
import hloom.numpy as jnp

HINT = "llvm.loop.vectorize.followup_vectorized"

SUM = """def k(lo, hi, x, y, out, p):
    for i in range(lo, hi):
        acc = {start}
        for j in range({count}):
            acc = {combine}
        out[i] = acc
"""
ROWS = """def k(lo, hi, x, y, out, p):
    t = local_array(32, float32)
    for s in range(lo, hi):
        for i in range({count}):
            t[i] = {value}
        for i in range({count}):
            out[i] = t[i]
"""

APART = """def k(lo, hi, x, y, out, p):
    for i in range(lo, hi):
        for j in range({count}):
            out[i * 64 + j] = x[i + {first}]
            out[i * 64 + 32 + j] = x[i + {second}]
"""


def lowered(text: str) -> str:
    last = "pred" if "p[" in text else "f32"
    parameters = tuple(Parameter("pointer", dtype) for dtype in ("f32", "f32", "f32", last))
    return to_llvm(KernelSource("k", text, parameters), dialect.SCOPE, "one pass")


def sums(count: object, combine: str, start: str = "float32(0)") -> str:
    return SUM.format(count=count, combine=combine, start=start)


@pytest.mark.parametrize(
    ("text", "hinted"),
    [
        (sums(16, "reduce_add(acc, x[i * 16 + j])"), 1),
        (sums(32, "reduce_add(acc, x[i * 32 + j] * y[j])"), 1),
        (sums(24, "reduce_add(acc, abs(x[j + i * 24 - 1]) * y[i])"), 1),
        (sums(16, "reduce_add(acc, x[j * 16 + i])"), 0),  # a column
        (sums(16, "reduce_add(acc, x[i - j])"), 0),
        (sums(16, "reduce_add(acc, exp(x[i * 16 + j]))"), 0),  # not unrolled anyway
        (sums(16, "reduce_max(acc, x[i * 16 + j])"), 0),  # not vectorised
        (sums(16, "acc + x[i * 16 + j]"), 0),
        (sums(8, "reduce_add(acc, x[i * 8 + j])"), 0),
        (sums(20, "reduce_add(acc, x[i * 20 + j])"), 0),
        (sums("(hi - lo)", "reduce_add(acc, x[j])"), 0),
        (sums(16, "reduce_add(acc, int32(x[j]))", "int32(0)"), 0),
        (ROWS.format(count=16, value="x[i] * y[i] + t[i]"), 0),
        (ROWS.format(count=16, value="select(p[i], x[i], y[i])"), 2),  # narrow integers: the copy, too
        (ROWS.format(count=24, value="select(p[i], x[i], y[i])"), 2),
        (ROWS.format(count=8, value="select(p[s], x[i], tanh(y[i]))"), 2),
        (ROWS.format(count=12, value="select(p[i], x[i], y[i])"), 0),
        (ROWS.format(count=16, value="select(p[i], x[2 * i], y[i])"), 1),  # the copy alone
        (ROWS.format(count=16, value="select(p[i], t[i + 1], y[i])"), 1),  # the same: of another iteration
        (APART.format(count=16, first="j * 2", second="j * 2 + 1"), 1),
        (APART.format(count=16, first="(3 + j) * 2", second="(3 + j) * 2 + 1"), 1),
        (APART.format(count=4, first="j * 2", second="j * 2 + 1"), 0),
        (APART.format(count=16, first="j * 3", second="j * 3 + 1"), 0),  # not all elements
        (APART.format(count=16, first="j", second="j + 1"), 0),
    ],
)
def test_what_is_vectorised_first(text: str, hinted: int) -> None:
    left = lowered(text)
    nodes = re.findall(rf'^(!\d+) = !\{{ !"{HINT}"', left, re.M)
    loops = re.findall(r"^(!\d+) = (?:distinct )?!\{ \1, (.*) \}$", left, re.M)
    assert sum(node in parts.split(", ") for _, parts in loops for node in nodes) == hinted


FAR = """\
def k(lo, hi, x, y, out, p):
    for i in range(lo, hi):
        acc = float32(0)
        for j in range({count}):
            {statement}
        out[i] = acc
"""
WIDTH, INTERLEAVE = '"llvm.loop.vectorize.width", i32 1', '"llvm.loop.interleave.count", i32 4'


@pytest.mark.parametrize(
    ("statement", "is_scalar", "has_partial_sums"),
    [
        ("acc = reduce_add(acc, x[j * 60 + i] * x[j * 60 + lo])", True, True),  # a column times a column
        ("acc = reduce_add(acc, x[j * 60 + i] * y[j])", True, True),
        ("acc = reduce_add(acc, x[(j + 1) * hi + i])", True, True),
        ("acc = reduce_add(acc, x[j * 8 + i])", False, False),  # a group of vectors
        ("acc = reduce_add(acc, x[j] * y[j])", False, False),
        ("acc = reduce_add(acc, x[j * 60 + i] * x[j] * y[j])", False, False),  # mostly neighbours
        ("acc = reduce_add(acc, exp(x[j * 60 + i]))", False, False),
        ("acc = reduce_add(acc, x[int64(y[j])])", False, False),
        ("acc = reduce_add(acc, x[j * j])", False, False),
        ("y[j * 60 + i] = x[j]", True, False),
        ("y[j * hi + i] = x[j]", False, False),  # a transpose, of which LLVM makes blocks
        ("y[j] = x[j * 60 + i] + x[j * 60 + lo]", True, False),
        ("y[j] = x[j * 60 + i]", False, False),
        ("y[j * 2] = x[j]", False, False),
        ("y[j * 60 + i] = tanh(x[j])", False, False),
        ("at = (j + 2) * 60\n            y[at + i] = x[j]", True, False),
    ],
)
def test_elements_that_lie_far_apart_are_no_vectors(statement: str, is_scalar: bool, has_partial_sums: bool) -> None:
    (_, inner) = _loops(lowered(FAR.format(count=60, statement=statement)))
    assert (WIDTH in inner, INTERLEAVE in inner) == (is_scalar, has_partial_sums)


@pytest.mark.parametrize(("count", "is_scalar"), [(16, False), (32, False), (33, True), ("(hi - lo)", True)])
def test_a_short_loop_is_unrolled_before(count: object, is_scalar: bool) -> None:
    (_, inner) = _loops(lowered(FAR.format(count=count, statement="acc = reduce_add(acc, x[j * 60 + i])")))
    assert (WIDTH in inner) is is_scalar


def test_a_sum_of_elements_that_lie_far_apart_has_four_chains() -> None:
    source = lowered(FAR.format(count=60, statement="acc = reduce_add(acc, x[j * 60 + i] * x[j * 60 + lo])"))
    with llvm.create_context() as context, llvm.parse_assembly(source, context) as module:
        optimise(module, widens_straight_lines(source))
        left = str(module)
    assert len(re.findall(r"phi float ", left)) >= 4 and " x float>" not in left and " x i64>" not in left


@pytest.mark.parametrize("index", ["j * hi + i", "i + hi * (j + 1)", "i + 3 - j * hi"])
def test_it_has_them_for_all_distances(index: str) -> None:
    """LLVM does not ask whether the elements are neighbours, in a loop with four chains, and has one chain if not."""
    source = lowered(FAR.format(count=60, statement=f"acc = reduce_add(acc, x[{index}] * y[j])"))
    with llvm.create_context() as context, llvm.parse_assembly(source, context) as module:
        optimise(module, widens_straight_lines(source))
        left = str(module)
    assert not re.search(r"icmp (eq|ne) i64 %\S+, 1\b", left)
    assert len(re.findall(r"phi float ", left)) >= 4 or "phi <4 x float>" in left


COLUMN = """def k(lo, hi, x, out, n, m):
    for i in range(lo, hi):
        acc = x[i]
        for j in range(m):
            start = {start}
            acc = maximum(acc, x[start * n + i])
        out[i] = acc
"""


@pytest.mark.parametrize("start", ["j", "j + 1"])
def test_partial_extrema_do_not_depend_on_the_stride(start: str) -> None:
    """LLVM does not write a loop for elements that are neighbours, also where a name stands for the row."""
    pointer, size = Parameter("pointer", "s32"), Parameter("size", "s64")
    kernel = KernelSource("k", COLUMN.format(start=start), (pointer, pointer, size, size))
    source = to_llvm(kernel, dialect.SCOPE, "one pass")
    with llvm.create_context() as context, llvm.parse_assembly(source, context) as module:
        optimise(module, widens_straight_lines(source))
        left = str(module)
    assert not re.findall(r"icmp (?:eq|ne) i64 %\S+, 1\n", left) and "vector.body" in left


TAKEN = """\
def k(lo, hi, x, y, out, p):
    for i in range(lo, hi):
        for j in range({count}):
            at = int64(x[i * 8 + j])
            out[i * 8 + j] = y[{index}]
"""


@pytest.mark.parametrize(
    ("count", "index", "is_kept_from_vectors"),
    [
        (8, "i * 8 + at", True),
        (8, "int64(x[j])", True),
        (8, "i * 8 + j", False),  # neighbours
        ("(hi - lo)", "i * 8 + at", False),  # the inner loop is long
        (64, "i * 8 + at", False),
    ],
)
def test_rows_of_which_a_few_elements_are_taken(count: object, index: str, is_kept_from_vectors: bool) -> None:
    assert ('"llvm.loop.vectorize.width"' in lowered(TAKEN.format(count=count, index=index))) is is_kept_from_vectors


@pytest.mark.parametrize(
    ("count", "index", "is_vectorised_first"),
    [(8, "i * 8 + at", True), (8, "i * 8 + j", False), (4, "i * 8 + at", False), (16, "i * 8 + at", False)],
)
def test_few_elements_that_are_taken(count: object, index: str, is_vectorised_first: bool) -> None:
    text = lowered(TAKEN.format(count=count, index=index))
    assert ("followup_vectorized" in text) is is_vectorised_first


MOVED = """\
def k(lo, hi, x, y, out, p):
    places = local_array(256, int64)
    for i in range(lo, hi):
        at = int64(x[i]) & 255
        place = places[at]
        {count}
        {move}
"""
COUNT, MOVE = "places[at] = place + 1", "out[place] = y[i]"


@pytest.mark.parametrize(
    ("count", "move", "is_copied"),
    [
        (COUNT, MOVE, True),
        (COUNT, "out[lo + places[at]] = y[i]", True),
        (COUNT, "if x[i] > y[i]:\n            out[place] = y[i]", True),
        (COUNT, "out[i] = y[i]", False),  # a histogram
        (COUNT, "out[at] = y[i]", False),  # a place that is not counted
        ("y[i] = x[i]", MOVE, False),
        (COUNT, "for j in range(lo, hi):\n            out[place + j] = y[j]", False),  # the inner loop takes the time
    ],
)
def test_loops_that_count_places_are_copied(count: str, move: str, is_copied: bool) -> None:
    text = lowered(MOVED.format(count=count, move=move))
    assert ('"llvm.loop.unroll.count"' in text) is is_copied
    runtime = sum("unroll.runtime.disable" in parts for parts in _loops(text))
    assert runtime == len(_loops(text)) - is_copied


UPDATED = """\
def k(lo, hi, x, y, out, p):
    places = local_array(256, int64)
    for i in range(lo, hi):
        at = {at}
        {update}
"""
ADD = "out[at] = out[at] + y[i]"


@pytest.mark.parametrize(
    ("at", "update", "is_copied"),
    [
        ("places[i]", ADD, True),
        ("lo + int64(x[i])", ADD, True),
        ("i", ADD, False),
        ("places[i]", "out[at] = y[i]", False),
        ("places[i]", "if at >= 0:\n            out[at] = out[at] + y[i]", False),  # a test costs as much as it gains
    ],
)
def test_loops_that_update_places_are_copied(at: str, update: str, is_copied: bool) -> None:
    text = lowered(UPDATED.format(at=at, update=update))
    assert ('"llvm.loop.unroll.count"' in text) is is_copied


def _loops(text: str) -> list[str]:
    """The metadata of each loop, with the names of its hints."""
    nodes = dict(re.findall(r"^(!\d+) = (?:distinct )?!\{ ?(.*?) ?\}$", text, re.M))
    loops = re.findall(r"!llvm\.loop (!\d+)", text)
    return [" ".join(nodes[part] for part in nodes[loop].split(", ")) for loop in loops]


@pytest.mark.parametrize(
    "text",
    [
        sums(16, "reduce_add(acc, x[i * 16 + j])"),
        sums(32, "reduce_add(acc, x[i * 32 + j] * y[j])"),
        ROWS.format(count=16, value="select(p[i], x[i], y[i])"),
    ],
)
def test_nothing_is_left_of_the_short_loop(text: str) -> None:
    """One loop is left, the kernel's own, and its body is vectors; on some machines a loop of two of them."""
    source = lowered(text)
    with llvm.create_context() as context, llvm.parse_assembly(source, context) as module:
        optimise(module, widens_straight_lines(source))
        left = str(module)
    assert " x float>" in left and "alloca" not in left
    nodes = dict(re.findall(r"^(!\d+) = (?:distinct )?!\{(.*)\}$", left, re.M))
    loops = [nodes[node] for node in re.findall(r"!llvm\.loop (!\d+)", left)]
    of_vectors = [any("llvm.loop.isvectorized" in nodes[part] for part in loop.split(", ")) for loop in loops]
    assert of_vectors.count(False) == 1


@pytest.mark.parametrize(
    ("line", "widens"),
    [
        ("%x = load float, float* %p", True),
        ("%q = bitcast float* %p to i8*", True),
        ("%q = getelementptr i8, i8* %p, i64 4", True),
        ("%x = load i8, i8* %p", False),
        ("%x = trunc i64 %y to i16", False),
        ("%x = udiv i32 %y, 7", False),
        ("%x = sdiv i32 %y, -7", False),
        ('@"hloom_native_loop_add_1f" %x = alloca [4 x float]', True),
        ('@"hloom_native_loop_add_1f" %x = alloca [3 x float]', False),
        ('@"hloom_native_loop_add_1f" %x = alloca [3 x float] %y = alloca [8 x float]', True),
        ('@"hloom_dot_1f" %x = alloca [3 x float]', True),
    ],
)
def test_straight_lines_without_narrow_integers_are_widened(line: str, widens: bool) -> None:
    """A pointer to bytes, as in a list of functions, is no narrow integer."""
    assert widens_straight_lines(line) is widens


@pytest.mark.parametrize("operation", ["idiv(x[i], int32(7))", "remainder(x[i], int32(-7))"])
def test_divisions_by_literals_are_seen(operation: str) -> None:
    text = f"def k(lo, hi, x):\n    for i in range(lo, hi):\n        x[i] = {operation}\n"
    assert not widens_straight_lines(to_llvm(KernelSource("k", text, (Parameter("pointer", "s32"),)), dialect.SCOPE))


@pytest.mark.parametrize(("body", "register", "features", "count"), [
    ("exp(x[i])", 32, "", 2), ("exp(x[i]) + tanh(x[i])", 32, "", 2), ("exp(tanh(log(x[i])))", 32, "", 1),
    ("sqrt(x[i])", 32, "", 1), ("exp(x[i])", 32, "avx512vl", 1), ("exp(x[i])", 64, "avx512vl", 1),
    ("exp(x[i])", 16, "", 1),
])  # fmt: skip
def test_loops_over_elementary_functions_are_interleaved(body: str, register: int, features: str, count: int) -> None:
    """Of a few functions, on processors with 16 registers of 32 bytes."""
    text = f"def k(lo, hi, x):\n    for i in range(lo, hi):\n        x[i] = {body}\n"
    kernel = KernelSource("k", text, (Parameter("pointer", "f32"),))
    module = to_llvm(kernel, dialect.SCOPE, features=frozenset(features.split()), register=register)
    assert re.findall(r'interleave.count", i32 (\d)', module) == [str(count)]


INDEPENDENT = """def k(lo, hi, out, d):
    for j in range(lo, hi):
        for i in independent(d):
            out[j * 4 * d + i] = out[j * 4 * d + i] + float32(1)
            out[j * 4 * d + i + d] = out[j * 4 * d + i] * float32(2)
"""


@pytest.mark.parametrize("way", ["one pass", "numba"])
def test_an_independent_loop_is_a_range_of_which_llvm_knows_more(way: str) -> None:
    parameters = (Parameter("pointer", "f32"), Parameter("size", "s64"))
    text = to_llvm(KernelSource("k", INDEPENDENT, parameters), dialect.SCOPE, way)
    assert ("llvm.loop.parallel_accesses" in text) == (way == "one pass")
    if way == "one pass":
        assert text.count("!llvm.access.group") >= 4 and "distinct !{}" in text


STREAMED = """def k(lo, hi, x, out):
    for j in range(lo, hi):
        for i in streamed(16):
            out[j * 16 + i] = x[j * 16 + i]
"""


@pytest.mark.parametrize("way", ["one pass", "numba"])
def test_a_streamed_loop_is_a_range_whose_stores_go_past_the_caches(way: str) -> None:
    parameters = (Parameter("pointer", "f32"), Parameter("pointer", "f32"))
    text = to_llvm(KernelSource("k", STREAMED, parameters), dialect.SCOPE, way, register=64)
    assert ("!nontemporal" in text) == ("fence seq_cst" in text) == (way == "one pass")
    assert "!nontemporal" not in to_llvm(KernelSource("k", STREAMED, parameters), dialect.SCOPE, register=0)


NESTS = """def k(lo, hi, x, y, out, n, t0):
    t = local_array(64, float32)
    for i in range(lo, hi):
        for j in range({outer}):
            for l in range({inner}):
                {body}
"""


@pytest.mark.parametrize(
    ("outer", "inner", "body", "kept"),
    [
        ("4", "n", "out[(i * 4 + j) * n + l] = x[j * n + l]", 1),
        ("4", "n - 1", "out[(i * 4 + j) * n + l] = x[j * n + l]", 1),
        ("4", "minimum(n, hi)", "out[(i * 4 + j) * n + l] = exp(x[j * n + l])", 1),
        ("4", "8", "out[(i * 4 + j) * 8 + l] = x[j * 8 + l]", 0),
        ("4", "j", "out[(i * 4 + j) * 8 + l] = x[j * 8 + l]", 0),  # a triangle: its counts are numbers when unrolled
        ("n", "t0", "out[(i * 4 + j) * n + l] = x[j * n + l]", 0),  # LLVM would not unroll it
        ("4", "n", "t[j] = t[j] + x[j * n + l]", 0),  # elements that become registers
        ("4", "n", "if j > 1: out[(i * 4 + j) * n + l] = x[j * n + l]", 0),  # a branch that a copy does not have
    ],
)
def test_loops_around_long_ones_are_not_copied(outer: str, inner: str, body: str, kept: int) -> None:
    text = NESTS.format(outer=outer, inner=inner, body=body)
    parameters = (*(Parameter("pointer", "f32") for _ in range(3)), Parameter("size", "s64"), Parameter("size", "s64"))
    left = to_llvm(KernelSource("k", text, parameters), dialect.SCOPE, "one pass")
    nodes = re.findall(r'^(!\d+) = !\{ !"llvm.loop.unroll.disable" \}', left, re.M)
    loops = re.findall(r"^(!\d+) = (?:distinct )?!\{ \1, (.*) \}$", left, re.M)
    assert sum(node in parts.split(", ") for _, parts in loops for node in nodes) == kept


def test_the_code_of_a_loop_around_a_long_one_does_not_grow_with_its_count() -> None:
    parameters = (*(Parameter("pointer", "f32") for _ in range(3)), Parameter("size", "s64"), Parameter("size", "s64"))
    found = []
    for count in (2, 4, 9):
        text = NESTS.format(outer=count, inner="n", body="out[(i * 4 + j) * n + l] = x[j * n + l] * y[l]")
        source = to_llvm(KernelSource("k", text, parameters), dialect.SCOPE, "one pass")
        with llvm.create_context() as context, llvm.parse_assembly(source, context) as module:
            optimise(module, widens_straight_lines(source))
            found.append(len(re.findall(r"= fmul ", str(module))))
    assert found[0] == found[1] == found[2] <= 3  # a loop of vectors, one of half as long ones, and what is left over


def test_a_loop_with_a_state_of_three_elements_is_scalar() -> None:
    """Its kernel has the name that `widens_straight_lines` looks for."""

    def step(state, _):
        x, y, z = state
        return state + 0.01 * jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 2.5 * z]), None

    run = hloom.jit(lambda state: hloom.lax.scan(step, state, None, length=300)[0])
    kernels = run.lower(jnp.ones(3)).compile().kernels()
    (text,) = (str(kernel) for kernel in kernels.values() if "for step0 in" in str(kernel))
    assert "\ndef native_loop_" in text and re.findall(r"local_array\((\d+)", text) == ["3"]


BLOCKS = """def k(lo, hi, x, y, out, p):
    for i in range(lo, hi):
        acc = float32(0)
        for j in range(hi):
            for k in range({count}):
                {body}
        out[i] = acc
"""


@pytest.mark.parametrize(
    ("count", "body", "is_kept"),
    [
        (16, "acc = reduce_add(acc, x[(j * 16 + k) * hi + i])", True),
        (16, "acc = reduce_add(acc, x[(j * 16 + k) * hi + i] - y[i])", True),
        (16, "out[(i * hi + j) * 16 + k] = x[(j * 16 + k) * hi + i]", True),
        (16, "out[(i * hi + j) * 16 + k] = x[((i * hi + j) * 16 + k) * 3]", True),
        (8, "out[(i * hi + j) * 8 + k] = x[((i * hi + j) * 8 + k) * 3]", False),  # a group of eight
        (16, "acc = reduce_add(acc, x[(i * hi + j) * 16 + k])", False),  # neighbours
        (16, "acc = reduce_add(acc, x[(i * 16 + k) * hi + j])", False),  # neighbours along the outer loop
        (16, "acc = reduce_add(acc, x[(j * 16 + k) * hi + i] * y[k])", False),
        (16, "out[(i * hi + j) * 16 + k] = y[i]", False),
    ],
)
def test_loops_around_short_ones_without_neighbours_have_no_vectors(count: int, body: str, is_kept: bool) -> None:
    text = lowered(BLOCKS.format(count=count, body=body))
    assert ("llvm.loop.vectorize.width" in text) is is_kept


def test_a_short_copy_in_a_short_loop_is_a_vector() -> None:
    """And dimensions after a concatenation's own are one, whatever they are."""
    def kernel(sizes: tuple[int, ...], axis: int) -> str:
        x = hloom.ShapeDtypeStruct(sizes, "float32")
        (text,) = hloom.jit(lambda x, y: jnp.concatenate([x, y], axis)).lower(x, x).compile().kernels().values()
        return text.partition("\n")[2]

    assert kernel((5, 20, 8, 8), 1) == kernel((5, 20, 24, 3), 1)
    joined = hloom.jit(lambda x, y: jnp.stack([x, y], 2))
    for rows, columns in ((4, 8), (30, 16)):
        x = hloom.ShapeDtypeStruct((20, rows, columns), "float32")
        (text,) = joined.lower(x, x).compile().kernels().values()
        assert text.count(f"in lanes({columns})") == 2
