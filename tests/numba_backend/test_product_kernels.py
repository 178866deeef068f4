"""Products that are kernels rather than calls of BLAS: which, and that they are right for all sizes and orders."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hloom.hlo import parse
from hloom.hlo.evaluator import evaluate
from hloom.hlo.opcode import Opcode
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.emitted_kernel import EmittedKernel
from hloom.numba_backend.executable import NumbaExecutable
from hloom.numba_backend.loops.statements import SizeParameter
from hloom.numba_backend.machine import Machine, compiling_for, this_machine
from hloom.numba_backend.policy.products import product_kernel, tiles
from hloom.numba_backend.runtime import threads

import hloom
from support.registers import NARROW, WIDE

DTYPES = {
    "f32": np.float32, "f64": np.float64, "c64": np.complex64, "s8": np.int8, "u8": np.uint8, "s16": np.int16,
    "s32": np.int32, "u32": np.uint32, "s64": np.int64,
}  # fmt: skip
TOLERANCE = {"f32": 1e-5, "f64": 1e-13, "c64": 1e-5}


@pytest.fixture(autouse=True)
def restore_threads(narrow_registers: None) -> Iterator[None]:
    yield
    threads.set_num_threads(None)


def program(
    types: tuple[str, str, str], m: int, k: int, n: int, ta: bool = False, tb: bool = False, batch: tuple[int, ...] = ()
) -> str:
    """A program of one product; `ta`, `tb`: the operand is stored the other way round."""
    def shape(kind: str, *sizes: int) -> str:
        return f"{kind}[{','.join(map(str, (*batch, *sizes)))}]"

    rank = len(batch)
    batches = "{" + ",".join(map(str, range(rank))) + "}"
    lhs, rhs = shape(types[0], *((k, m) if ta else (m, k))), shape(types[1], *((n, k) if tb else (k, n)))
    return f"""HloModule products
ENTRY e {{
  x = {lhs} parameter(0)
  y = {rhs} parameter(1)
  ROOT d = {shape(types[2], m, n)} dot(x, y), lhs_batch_dims={batches}, rhs_batch_dims={batches},
    lhs_contracting_dims={{{rank + (not ta)}}}, rhs_contracting_dims={{{rank + tb}}}
}}"""


def numbers(kind: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng([*shape, len(kind)])
    dtype = DTYPES[kind]
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if kind.startswith("c") else values).astype(dtype)


def check(types: tuple[str, str, str], *sizes: int, kernel: str | None, **options: object) -> None:
    """Compare with NumPy in a type in which the sums are exact, or almost. `kernel`: what computes it; None: BLAS."""
    text = program(types, *sizes, **options)  # type: ignore[arg-type]
    executable = NumbaCompiler().compile(parse(text))
    names = [use.source.split("(")[0].removeprefix("def ") for use in executable._details._lowered.kernels]
    assert names == ([] if kernel is None else [kernel]), text
    m, k, n = sizes
    batch = options.get("batch", ())
    ta, tb = options.get("ta"), options.get("tb")
    x = numbers(types[0], *batch, *((k, m) if ta else (m, k)))  # type: ignore[misc]
    y = numbers(types[1], *batch, *((n, k) if tb else (k, n)))  # type: ignore[misc]
    (actual,) = executable.execute([x, y])
    left, right = (v.swapaxes(-1, -2) if transposed else v for v, transposed in ((x, ta), (y, tb)))
    if types[2] in TOLERANCE:
        wide = np.complex128 if types[2] == "c64" else np.float64
        expected = left.astype(wide) @ right.astype(wide)
        bound = TOLERANCE[types[2]] * (abs(left) @ abs(right))
        assert (abs(actual - expected) <= bound).all(), text
    else:
        expected = (left.astype(np.int64) @ right.astype(np.int64)).astype(DTYPES[types[2]])
        np.testing.assert_array_equal(actual, expected, err_msg=text)


FORMS = [dict(zip(("ta", "tb"), transposed)) for transposed in itertools.product((False, True), repeat=2)]
F32 = ("f32", "f32", "f32")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize(
    ("types", "vectors", "length", "depth"),
    [(F32, 2, 301, 1100), (F32, 8, 257, 515), (("f64", "f64", "f64"), 3, 1001, 131)],
    ids=str,
)
def test_a_matrix_and_a_few_vectors(
    types: tuple[str, str, str], vectors: int, length: int, depth: int, form: dict[str, bool]
) -> None:
    """Whether the vectors are rows or columns, and the matrix's rows are along the sum or along the result."""
    columns = "product_of_columns" if form["ta"] else "product_of_rows"
    check(types, length, depth, vectors, kernel=columns, **form)
    rows = "product_of_rows" if form["tb"] else "product_of_columns"
    check(types, vectors, depth, length, kernel=rows, **form)


@pytest.mark.parametrize(("depth", "block", "least"), [(800, 512, 64), (4000, 2048, 1024)])
def test_rows_of_a_matrix_in_no_cache_are_read_in_long_pieces(depth: int, block: int, least: int) -> None:
    """By a thread in its turn, and for one block of sums."""
    dot = parse(program(F32, 8, depth, 10_000)).entry.root
    machine = Machine(2, 32, 64, True, 64, 1 << 15, 1 << 20, 1 << 25)
    with compiling_for(machine):
        kernel = product_kernel(dot, machine)
    assert kernel is not None
    assert f"Split(loop='j', outer='block', size={block}" in kernel.source
    assert kernel.least == least


@pytest.mark.parametrize(("columns", "whole", "halves"), [(196, 32, 16), (192, 32, 32), (220, 32, 32), (100, 16, 16)])
def test_tiles_are_as_narrow_as_leaves_less_over_where_registers_have_halves(
    columns: int, whole: int, halves: int
) -> None:
    dot = parse(program(F32, 128, 128, columns)).entry.root
    for in_halves, width in ((False, whole), (True, halves)):
        machine = Machine(2, 32, 64, True, 64, 1 << 15, 1 << 20, 1 << 25, in_halves)
        with compiling_for(machine):
            kernel = product_kernel(dot, machine)
        assert kernel is not None
        assert f"Split(loop='j', outer='column', size={width}, tail='shift')" in kernel.source


def kernels_of(executable: NumbaExecutable) -> list[str]:
    return [text.partition("def ")[2].partition("(")[0] for text in executable.kernels().values()]


@pytest.mark.parametrize(
    ("types", "m", "n", "k", "ta", "tb", "whole", "halves"),
    [
        (F32, 192, 192, 1040, True, False, "transposed", "BLAS"),
        (F32, 192, 192, 1040, True, True, "transposed", "BLAS"),
        (F32, 192, 192, 512, True, False, "kernel", "kernel"),  # the sums are short
        (F32, 128, 128, 1040, True, False, "transposed", "transposed"),
        (F32, 256, 96, 1040, True, False, "kernel", "kernel"),  # so few columns are not worth a copy
        (F32, 512, 512, 2048, False, False, "kernel", "BLAS"),
        (F32, 512, 512, 2048, False, True, "kernel", "kernel"),
        (F32, 512, 500, 2048, False, False, "kernel", "kernel"),
        (F32, 512, 512, 2047, False, False, "kernel", "kernel"),
        (("f64", "f64", "f64"), 256, 256, 300, True, False, "transposed", "BLAS"),
        (("s32", "s32", "s32"), 192, 192, 1040, True, False, "transposed", "transposed"),
        (("s32", "s32", "s32"), 192, 192, 1040, False, False, "kernel", "kernel"),
        (("s8", "s8", "s32"), 256, 256, 256, True, False, "transposed", "transposed"),
        (("s8", "s8", "s32"), 256, 256, 250, True, False, "kernel", "kernel"),
        (("s8", "s8", "s32"), 256, 256, 256, False, False, "kernel", "kernel"),
    ],
    ids=str,
)  # fmt: skip
def test_long_sums_of_large_matrices(
    types: tuple[str, str, str], m: int, n: int, k: int, ta: bool, tb: bool, whole: str, halves: str
) -> None:
    """A kernel reads a matrix in columns from other pages of memory for each panel: it is transposed first."""
    text = program(types, m, k, n, ta, tb)
    x, y = numbers(types[0], *((k, m) if ta else (m, k))), numbers(types[1], *((n, k) if tb else (k, n)))
    for in_halves, expected in ((False, whole), (True, halves)):
        machine = Machine(2, 32, 64, False, 64, 1 << 15, 1 << 18, 1 << 25, in_halves)
        with compiling_for(machine):
            executable = NumbaCompiler().compile(parse(text))
            names = kernels_of(executable)
        moves = [name for name in names if not name.endswith("product")]
        assert [*moves, *names[len(moves) :]] == names
        found = "BLAS" if not names else "transposed" if moves == ["fused_transpose"] else "kernel"
        assert found == expected, names
        (actual,) = executable.execute([x, y])
        left, right = x.T if ta else x, y.T if tb else y
        if types[2] in TOLERANCE:
            bound = TOLERANCE[types[2]] * (abs(left).astype(np.float64) @ abs(right))
            assert (abs(actual - left.astype(np.float64) @ right) <= bound).all()
        else:
            exact = (left.astype(np.int64) @ right.astype(np.int64)).astype(DTYPES[types[2]])
            np.testing.assert_array_equal(actual, exact)


@pytest.mark.parametrize("length", [2500, 257])
def test_products_with_matrices_in_no_cache(length: int) -> None:
    with compiling_for(replace(this_machine(), second_cache=1 << 16, third_cache=1 << 16)):
        check(F32, 8, 515, length, kernel="product_of_columns")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize(
    ("types", "sizes", "batch"),
    [
        (F32, (3, 3, 3), (100,)), (F32, (8, 8, 8), (33,)), (F32, (5, 7, 11), (4, 13)), (F32, (16, 16, 16), (20,)),
        (("c64", "c64", "c64"), (4, 4, 4), (70,)), (("f64", "f64", "f64"), (6, 2, 6), (2, 3, 10)),
        (F32, (1000, 8, 8), ()), (F32, (999, 3, 61), ()), (F32, (513, 2, 2), ()),
    ],
    ids=str,
)  # fmt: skip
def test_many_small_products(
    types: tuple[str, str, str], sizes: tuple[int, int, int], batch: tuple[int, ...], form: dict[str, bool]
) -> None:
    check(types, *sizes, batch=batch, kernel="product", **form)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("element", ["s8", "u8", "s16", "s32", "u32", "s64"])
@pytest.mark.parametrize(
    ("sizes", "batch"),
    [((3, 3, 3), (100,)), ((2, 2, 2), (257,)), ((3, 3, 1), (90,)), ((8, 8, 8), (33,)), ((5, 7, 3), (4, 13)),
     ((4, 4, 4), (70,)), ((999, 3, 3), ()), ((513, 16, 6), ()), ((1, 9, 5), (300,)), ((2, 5, 700), ())],
    ids=str,
)  # fmt: skip
def test_many_small_products_of_integers(element: str, sizes: tuple[int, int, int], batch: tuple[int, ...]) -> None:
    """They wrap around. As sums in a nest, few of these loops would become vectors."""
    for form in FORMS:
        check((element, element, element), *sizes, batch=batch, kernel="product", **form)


def test_sums_of_odd_rows_of_short_integers_are_wide() -> None:
    def text(n: int) -> str:
        x, y = np.ones((300, 3), np.int16), np.ones((3, n), np.int16)
        (kernel,) = hloom.jit(lambda x, y: x @ y).lower(x, y).compile().kernels().values()
        return str(kernel)

    assert "int32" in text(3)
    assert "int32" not in text(4)


def test_small_products_of_integers_are_parts_of_loops() -> None:
    """A loop with one is a kernel still, as with one of floats."""
    x = np.arange(300 * 3, dtype=np.int32).reshape(300, 3)
    m = np.array([[1, 2, 0], [0, 1, 1], [3, 0, 1]], np.int32)
    compiled = hloom.jit(lambda x: hloom.lax.fori_loop(0, 5, lambda _, x: x @ m, x)).lower(x).compile()
    np.testing.assert_array_equal(compiled(x), x @ np.linalg.matrix_power(m, 5))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("types", "forms"),
    [(("s32", "s32", "s32"), FORMS), (("u32", "u32", "u32"), FORMS[:1]), (("s16", "s32", "s16"), FORMS[1:2]),
     (("s16", "s16", "s64"), FORMS[:1]), (("s64", "s64", "s64"), FORMS[2:3]), (("s8", "s32", "s64"), FORMS[3:])],
    ids=str,
)  # fmt: skip
def test_large_products_of_integers(types: tuple[str, str, str], forms: list[dict[str, bool]]) -> None:
    for form in forms:
        check(types, 97, 300, 33, kernel="deep_product", **form)
        if types[2] != "s64":  # fewer columns than a tile has
            check(types, 97, 300, 13, kernel="blocked_product", **form)
            check(types, 4000, 30, 13, kernel="blocked_product", **form)


@pytest.mark.parametrize(
    ("types", "sizes", "batch"),
    [(F32, (301, 100, 150), ()), (F32, (12, 120, 5000), ()), (F32, (96, 64, 80), (2, 3)), (F32, (1200, 128, 16), ()),
     (("f64", "f64", "f64"), (260, 77, 107), ())],
    ids=str,
)  # fmt: skip
def test_short_sums(types: tuple[str, str, str], sizes: tuple[int, int, int], batch: tuple[int, ...]) -> None:
    """Rows and columns that are no multiple of a tile's, several blocks and strips; in all orders."""
    for form in FORMS:
        check(types, *sizes, batch=batch, kernel="shallow_product", **form)


@pytest.mark.parametrize("sizes", [(64, 64, 64), (96, 33, 80), (120, 256, 48)], ids=str)
def test_short_sums_of_small_products(sizes: tuple[int, int, int]) -> None:
    """BLAS keeps those whose left-hand side is transposed, if their sums are long."""
    for form in FORMS:
        check(F32, *sizes, kernel=None if form["ta"] and sizes[1] > 128 else "shallow_product", **form)


@pytest.mark.parametrize("machine", [NARROW, WIDE], ids=["narrow", "wide"])
@pytest.mark.parametrize("types", [F32, ("f64", "f64", "f64"), ("s32", "s32", "s32"), ("s16", "s32", "s32")], ids=str)
def test_transposed_right_hand_sides(types: tuple[str, str, str], machine: Machine) -> None:
    """Sums of blocks that are transposed in registers, of less than a block, and of blocks and more."""
    with compiling_for(machine):
        for k in (16, 15, 33, 160, 300):
            module = parse(program(types, 120, k, 96, tb=True))
            (product,) = [tiles(i) for i in module.entry.instructions if i.opcode is Opcode.DOT]
            assert ("turned" in product.source) == (len(set(types)) == 1)
            x, y = numbers(types[0], 120, k), numbers(types[1], 96, k)
            (expected,), (actual,) = evaluate(module, x, y), NumbaCompiler().compile(module).execute([x, y])
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)], ids=str)
@pytest.mark.parametrize(
    "sizes",
    [(2, 3, 2), (2, 2, 2), (3, 5, 3), (4, 4, 4), (5, 32, 7), (6, 8, 6), (7, 3, 17), (8, 8, 8), (2, 31, 32), (32, 32, 2),
     (13, 7, 15), (16, 16, 16), (17, 19, 23), (32, 32, 32)],
    ids=str,
)  # fmt: skip
def test_little_products(sizes: tuple[int, int, int], batch: tuple[int, ...], element: str) -> None:
    """With fewer rows or columns than a tile, and more."""
    name = "shallow_product" if sizes[0] >= 6 and sizes[2] >= (16 if element == "f32" else 8) else "blocked_product"
    for form in FORMS:
        check((element, element, element), *sizes, batch=batch, kernel=name, **form)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize(
    ("types", "sizes", "batch", "kernel"),
    [(F32, (64, 64, 64), (), "shallow_product"), (F32, (100, 300, 100), (), "deep_product"),
     (F32, (131, 257, 97), (2,), "deep_product"), (("f64", "f64", "f64"), (66, 530, 60), (), "deep_product"),
     (F32, (33, 50, 64), (), "shallow_product"), (F32, (7, 60, 33), (), "blocked_product"),
     (F32, (17, 40, 15), (), "blocked_product"), (F32, (65, 64, 15), (), "blocked_product"),
     (F32, (70, 300, 9), (), "blocked_product"), (F32, (63, 65, 15), (), None), (F32, (7, 65, 65), (), None),
     (F32, (9, 65, 33), (), None), (("c64", "c64", "c64"), (64, 64, 64), (), None)],
    ids=str,
)  # fmt: skip
def test_products_in_wide_registers(
    types: tuple[str, str, str], sizes: tuple[int, int, int], batch: tuple[int, ...], kernel: str | None,
    form: dict[str, bool],
) -> None:  # fmt: skip
    """BLAS has those that are much smaller than their tiles."""
    with compiling_for(WIDE):
        check(types, *sizes, batch=batch, kernel=kernel, **form)


def test_parts_of_a_deep_sum_are_added() -> None:
    """The error of 16384 positive terms is that of some hundred; that of one sum after the other is ten times so."""
    rng = np.random.default_rng(0)
    x, y = rng.random((64, 16384), np.float32), rng.random((16384, 64), np.float32)
    with compiling_for(WIDE):
        executable = NumbaCompiler().compile(parse(program(F32, 64, 16384, 64)))
    assert [text.splitlines()[1].split("(")[0] for text in executable.kernels().values()] == ["def deep_product"]
    expected = x.astype(np.float64) @ y
    assert (abs(executable.execute([x, y])[0] - expected) <= 20 * 2**-24 * expected).all()


def test_products_in_wide_registers_share_kernels() -> None:
    """A tile has one register in a row, or two."""
    found = set()
    with compiling_for(WIDE):
        for n in (16, 48, 64, 96, 200, 500):
            executable = NumbaCompiler().compile(parse(program(F32, n, n, n)))
            found |= {use.source for use in executable._details._lowered.kernels}
    assert len(found) == 3  # one of these has parts of sums


def test_little_products_share_kernels() -> None:
    """All sizes and orders: two numbers of rows times two of columns."""
    found = set()
    for m, k, n in itertools.product((2, 5, 6, 17), (2, 8, 32), (2, 7, 16, 31)):
        for form in FORMS:
            executable = NumbaCompiler().compile(parse(program(F32, m, k, n, **form)))  # type: ignore[arg-type]
            found |= {use.source for use in executable._details._lowered.kernels}
    assert len(found) == 4


@pytest.mark.parametrize("sizes", [(3, 4, 5), (7, 8, 9), (17, 16, 18)], ids=str)
def test_little_products_of_special_numbers(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    executable = NumbaCompiler().compile(parse(program(F32, m, k, n)))
    x, y = np.full((m, k), -0.0, np.float32), np.ones((k, n), np.float32)
    x[m - 1, 1], x[0, 0], y[k - 1, n - 1] = np.nan, np.inf, -np.inf
    (actual,) = executable.execute([x, y])
    with np.errstate(invalid="ignore"):
        expected = sum(np.multiply.outer(x[:, p], y[p]) for p in range(k)) + np.float32(0)
    np.testing.assert_array_equal(actual, expected)
    assert not np.signbit(actual[actual == 0]).any()


@pytest.mark.parametrize("k", [100, 256])
def test_short_sums_of_integers(k: int) -> None:
    for form in FORMS[1:3]:
        check(("s8", "s32", "s32"), 97, k, 33, kernel="shallow_product", **form)


def test_batches_of_products_of_integers() -> None:
    check(("s32", "s32", "s32"), 16, 70, 31, batch=(2, 5), kernel="shallow_product", tb=True)


@pytest.mark.parametrize(
    "sizes",
    [(300, 300, 1), (1, 300, 300), (1, 3, 3), (3, 3, 1), (3, 33, 3), (50, 50, 50), (300, 300, 9), (256, 300, 256)],
    ids=str,
)
def test_blas_has_the_others(sizes: tuple[int, int, int]) -> None:
    check(F32, *sizes, kernel=None)


@pytest.mark.parametrize(
    ("types", "sizes"),
    [(F32, (400, 8, 0)), (F32, (0, 8, 8)), (F32, (400, 0, 4)), (("s32", "s32", "s32"), (0, 400, 400))],
    ids=str,
)
def test_empty_products(types: tuple[str, str, str], sizes: tuple[int, int, int]) -> None:
    module = parse(program(types, *sizes))
    m, k, n = sizes
    operands = [numbers(types[0], m, k), numbers(types[1], k, n)]
    for expected, actual in zip(evaluate(module, *operands), NumbaCompiler().compile(module).execute(operands)):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("types", [F32, ("s8", "s8", "s32"), ("s32", "s32", "s32")], ids=str)
def test_threads_do_not_change_results(types: tuple[str, str, str]) -> None:
    """Sums are cut in the same places for any number of threads."""
    for sizes, batch in (
        ((800, 900, 8), ()), ((7, 900, 4001), ()), ((8, 8, 8), (5000,)), ((300, 400, 200), ()), ((2000, 100, 200), ())
    ):  # fmt: skip
        executable = NumbaCompiler().compile(parse(program(types, *sizes, batch=batch)))
        m, k, n = sizes
        if types == F32 and min(sizes) >= 200 and not executable.kernels():
            continue  # BLAS computes it on this machine, and cuts as it likes
        operands = [numbers(types[0], *batch, m, k), numbers(types[1], *batch, k, n)]
        results = []
        for count in (1, 2):
            threads.set_num_threads(count)
            results.append(executable.execute(operands)[0])
        np.testing.assert_array_equal(*results)


def test_infinities_nans_and_signs_of_zeros() -> None:
    """A sum begins with 0.0, as XLA's does."""
    x = np.zeros((300, 1000), np.float32)
    y = -np.ones((1000, 3), np.float32)
    x[0, 5], x[1, 7], y[9, 2] = np.inf, np.nan, np.inf
    (actual,) = hloom.run_hlo(program(F32, 300, 1000, 3), x, y)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(actual, x @ y)
    assert not np.signbit(actual[2:, :2]).any()


def test_products_of_one_form_have_one_program_and_their_own_sizes() -> None:
    def emitted(*sizes: int, batch: tuple[int, ...] = (), kind: str = "f32") -> EmittedKernel:
        module = parse(program((kind, kind, kind), *sizes, batch=batch))
        return tiles(next(i for i in module.entry.instructions if i.opcode is Opcode.DOT))

    first, second = emitted(300, 64, 256), emitted(500, 128, 320)
    assert first.program is second.program
    for kernel, sizes in ((first, (300, 256, 64)), (second, (500, 320, 128))):
        named = {p.name: p.value for p in kernel.parameters if isinstance(p, SizeParameter)}
        assert (named["m"], named["n"], named["k"]) == sizes
    others = [emitted(300, 64, 256, batch=(3,)), emitted(5, 64, 256), emitted(300, 64, 256, kind="f64")]
    assert len({id(k.program) for k in (first, *others)}) == 4
