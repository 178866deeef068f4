"""Programs: rows (a program's instructions), jumps, callbacks, concurrent calls; no write outside the buffers."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hloom.numba_backend.runtime.errors import ProgramError
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.program import Argument, ProgramBuilder, pointer, scalar, size

from support.runtime_kernels import ADD, F32, PRED, S64, Guarded, run

SIZE = Parameter("size", "s64")

COUNT = KernelSource(
    "count",
    """def count(lo, hi, counter, again, limit):
    counter[0] = counter[0] + 1
    again[0] = counter[0] < limit
""",
    (S64, PRED, SIZE),
)

SET = KernelSource(
    "set", "def set(lo, hi, x, value):\n    for i in range(lo, hi):\n        x[i] = value\n", (S64, SIZE)
)


DIGITS = """def digits(lo, hi, x, out, n0, m0, m1):
    for i in range(lo, hi):
        for j in range(n0):
            digit0 = (i * n0 + j) // 20
            digit1 = (i * n0 + j) % 5
            digit2 = digit1 // 4
            digit3 = (i * n0 + j) // 5 % 4
            digit4 = digit3 // 3
            digit5 = digit1 // 2 % 2
            digit6 = digit3 % 3
            digit7 = digit1 % 2
            v0 = x[((((digit0 * m0 + digit2) * m1 + digit4) * 2 + digit5) * 2 * 3 + digit6) * 2 + digit7]
            out[i * n0 + j] = v0
"""


def test_digits_of_an_index_are_what_they_are_in_python() -> None:
    """With straight-line code made into vectors, LLVM 20 computes some of these in registers that nothing has set."""
    words = Parameter("pointer", "s32")
    kernel = KernelSource("digits", DIGITS, (words, words, SIZE, SIZE, SIZE))
    builder = ProgramBuilder()
    builder.kernel(kernel, [pointer(0, 0), pointer(1, 0), size(61), size(2), size(2)], 3)
    program = builder.build()
    x, expected = np.arange(960, dtype=np.int32), np.zeros(183, np.int32)
    scope: dict[str, Callable[..., None]] = {}
    exec(DIGITS, scope)  # a kernel's text is Python
    scope["digits"](0, 3, x, expected, 61, 2, 2)
    for _ in range(5):
        out = np.zeros(183, np.int32)
        program.run([x.ctypes.data, out.ctypes.data])
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("extent", [0, 1, 3, 17, 64, 1001])
@pytest.mark.parametrize("grain", [0, 1, 7, 64])
def test_a_kernel_stays_within_its_buffers(extent: int, grain: int) -> None:
    rng = np.random.default_rng(extent)
    x, y, out = (Guarded(rng.standard_normal(extent).astype(np.float32)) for _ in range(3))
    builder = ProgramBuilder()
    builder.kernel(ADD, [pointer(0), pointer(1), pointer(2)], extent, grain)
    builder.build().run([x.address, y.address, out.address])
    np.testing.assert_array_equal(out.array, x.array + y.array)
    for guarded in (x, y, out):
        guarded.check()


def test_offsets_copies_and_zeros() -> None:
    arena = Guarded(np.arange(64, dtype=np.float32))
    expected = arena.array.copy()
    builder = ProgramBuilder()
    builder.kernel(ADD, [pointer(0, 0), pointer(0, 4 * 8), pointer(0, 4 * 40)], 8)
    builder.copy(pointer(0, 4 * 1), pointer(0, 4 * 0), 4 * 16)
    builder.zero(pointer(0, 4 * 60), 4 * 4)
    builder.copy(pointer(0), pointer(0), 0)
    builder.zero(pointer(0), 0)
    builder.build().run([arena.address])
    expected[40:48] = expected[0:8] + expected[8:16]
    expected[1:17] = expected[0:16].copy()
    expected[60:64] = 0
    np.testing.assert_array_equal(arena.array, expected)
    arena.check()


@pytest.mark.parametrize("trips", [0, 1, 2, 100])
def test_while_loop(trips: int) -> None:
    counter, again, x, one = (
        np.zeros(1, np.int64),
        np.array([trips > 0]),
        np.zeros(5, np.float32),
        np.ones(5, np.float32),
    )
    builder = ProgramBuilder()
    top, done = builder.label(), builder.label()
    builder.place(top)
    builder.jump_if_false(pointer(1), done)
    builder.kernel(ADD, [pointer(2), pointer(3), pointer(4)], 5)
    builder.copy(pointer(2), pointer(4), 20)
    builder.kernel(COUNT, [pointer(0), pointer(1), size(trips)], 1)
    builder.jump(top)
    builder.place(done)
    run(builder.build(), counter, again, x, one, np.zeros(5, np.float32))
    assert counter[0] == trips and (x == trips).all()


@pytest.mark.parametrize(("index", "taken"), [(0, 0), (1, 1), (2, 2), (3, 2), (-1, 2), (-(2**31), 2), (2**31 - 1, 2)])
def test_switch_clamps_to_the_last_branch(index: int, taken: int) -> None:
    builder = ProgramBuilder()
    labels, end = [builder.label() for _ in range(3)], builder.label()
    builder.switch(pointer(0), labels)
    for number, label in enumerate(labels):
        builder.place(label)
        builder.kernel(SET, [pointer(1), size(number)], 1)
        builder.jump(end)
    builder.place(end)
    result = np.array([-7])
    run(builder.build(), np.array([index], np.int32), result)
    assert result[0] == taken


@pytest.mark.parametrize(
    ("dtype", "value", "pattern"),
    [
        ("f32", 1.5, 0x3FC00000), ("f32", -0.0, 0x80000000), ("f64", -2.0, -(2**62)), ("bf16", 1.0, 0x3F80),
        ("f16", 1.0, 0x3C00), ("s8", -1, 0xFF), ("s64", -1, -1), ("u64", 2**64 - 1, -1), ("pred", True, 1),
        ("c64", 1 + 2j, 0x400000003F800000), ("u32", 2**32 - 1, 0xFFFFFFFF),
    ],
)  # fmt: skip
def test_scalar_patterns(dtype: str, value: object, pattern: int) -> None:
    assert scalar(value, dtype) == Argument("scalar", -1, pattern)


def test_constants_live_as_long_as_the_program() -> None:
    builder = ProgramBuilder()
    values = np.arange(6, dtype=np.float32)
    builder.kernel(ADD, [builder.constant(values), builder.constant(values[::-1]), pointer(0)], 6)
    program = builder.build()
    values[:] = 100
    del builder, values
    out = np.zeros(6, np.float32)
    run(program, out)
    assert (out == 5).all()


def test_many_arguments_do_not_need_the_stack() -> None:
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    builder = ProgramBuilder()
    for _ in range(2000):
        builder.kernel(ADD, [pointer(0), pointer(1), pointer(1)], 4)
    program = builder.build()
    for _ in range(3):
        run(program, x, out)
    assert (out == 6000).all()


def test_empty_program() -> None:
    ProgramBuilder().build().run([])


def test_callbacks_get_words_and_their_errors_come_back() -> None:
    seen: list[tuple[int, ...]] = []
    x = np.zeros(3, np.int64)

    def fail(words: tuple[int, ...]) -> None:
        raise KeyError("from the callback")

    builder = ProgramBuilder()
    builder.callback(seen.append, [pointer(0, 8), size(-5), scalar(1.0, "f32")])
    builder.kernel(SET, [pointer(0), size(1)], 1)
    builder.callback(fail, [])
    builder.kernel(SET, [pointer(0), size(2)], 1)
    program = builder.build()
    for _ in range(2):
        with pytest.raises(KeyError, match="from the callback"):
            run(program, x)
    assert seen == [(x.ctypes.data + 8, -5, 0x3F800000)] * 2
    assert x[0] == 1


def test_a_callback_may_run_another_program() -> None:
    inner_builder = ProgramBuilder()
    inner_builder.kernel(ADD, [pointer(0), pointer(0), pointer(0)], 1 << 16, grain=1 << 10)
    inner = inner_builder.build()
    x = np.ones(1 << 16, np.float32)
    outer = ProgramBuilder()
    outer.kernel(ADD, [pointer(0), pointer(0), pointer(0)], 1 << 16, grain=1 << 10)
    outer.callback(lambda words: inner.run(words), [pointer(0)])
    outer.kernel(ADD, [pointer(0), pointer(0), pointer(0)], 1 << 16, grain=1 << 10)
    run(outer.build(), x)
    assert (x == 8).all()


def test_concurrent_calls_of_one_program() -> None:
    builder = ProgramBuilder()
    top, done = builder.label(), builder.label()
    builder.place(top)
    builder.kernel(ADD, [pointer(0), pointer(1), pointer(0)], 500, grain=100)
    builder.kernel(COUNT, [pointer(2), pointer(3), size(200)], 1)
    builder.jump_if_false(pointer(3), done)
    builder.jump(top)
    builder.place(done)
    program = builder.build()
    start = threading.Barrier(6)

    def call(value: int) -> np.ndarray:
        x, y = np.zeros(500, np.float32), np.full(500, value, np.float32)
        start.wait()
        for _ in range(20):
            run(program, x, y, np.zeros(1, np.int64), np.ones(1, bool))
        return x

    with ThreadPoolExecutor(6) as pool:
        for value, x in enumerate(pool.map(call, range(6))):
            assert (x == 20 * 200 * value).all()


def test_random_programs_agree_with_numpy() -> None:
    """Rows over one arena with random offsets; NumPy does the same, row by row."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        arena = Guarded(rng.standard_normal(256).astype(np.float32))
        expected = arena.array.copy()
        builder = ProgramBuilder()
        for _ in range(30):
            count = int(rng.integers(0, 40))
            first, second, out = (int(place) * 40 for place in rng.permutation(6)[:3])
            match rng.integers(3):
                case 0:
                    builder.kernel(ADD, [pointer(0, 4 * place) for place in (first, second, out)], count)
                    expected[out : out + count] = expected[first : first + count] + expected[second : second + count]
                case 1:
                    builder.copy(pointer(0, 4 * out), pointer(0, 4 * first), 4 * count)
                    expected[out : out + count] = expected[first : first + count]
                case _:
                    builder.zero(pointer(0, 4 * out), 4 * count)
                    expected[out : out + count] = 0
        builder.build().run([arena.address])
        np.testing.assert_array_equal(arena.array, expected)
        arena.check()


def test_mistakes_are_refused() -> None:
    builder = ProgramBuilder()
    label = builder.label()
    with pytest.raises(ProgramError, match="takes"):
        builder.kernel(ADD, [pointer(0)], 1)
    with pytest.raises(ProgramError, match="takes"):
        builder.kernel(ADD, [pointer(0), pointer(1), size(3)], 1)
    with pytest.raises(ProgramError, match="negative"):
        builder.kernel(ADD, [pointer(0)] * 3, -1)
    with pytest.raises(ProgramError, match="negative"):
        builder.copy(pointer(0), pointer(1), -4)
    with pytest.raises(ProgramError, match="pointer"):
        builder.jump_if_false(size(0), label)
    with pytest.raises(ProgramError, match="target"):
        builder.switch(pointer(0), [])
    with pytest.raises(ProgramError, match="c128"):
        scalar(1j, "c128")
    builder.place(label)
    with pytest.raises(ProgramError, match="once"):
        builder.place(label)
    builder.jump(builder.label())
    with pytest.raises(ProgramError, match="never placed"):
        builder.build()


def test_too_few_bases_are_refused() -> None:
    builder = ProgramBuilder()
    builder.zero(pointer(2), 8)
    program = builder.build()
    assert program.bases == 3
    for count in (0, 2):
        with pytest.raises(ProgramError, match="3 base"):
            program.run(list(itertools.repeat(0, count)))


@pytest.mark.parametrize("grain", [0, 100])
def test_bases_of_every_kind(grain: int) -> None:
    """Arguments besides a list that `run` accepts, or refuses, with the GIL kept (grain 100) and released."""
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    builder = ProgramBuilder()
    builder.kernel(ADD, [pointer(0), pointer(0), pointer(1)], 4, grain)
    program = builder.build()
    bases = [x.ctypes.data, out.ctypes.data]
    for given in (bases, tuple(bases), np.array(bases), [*bases, 0], [*map(np.int64, bases)]):
        out[:] = 0
        assert program.run(given) is None  # type: ignore[func-returns-value, arg-type]
        assert (out == 2).all()
    for wrong, error in (
        ([x.ctypes.data, "a"], TypeError), ([x.ctypes.data, 1.5], TypeError), (5, TypeError), (None, TypeError),
        ([x.ctypes.data, 2**70], OverflowError), (bases[:1], ProgramError), ({}, ProgramError),
    ):  # fmt: skip
        for _ in range(3):
            with pytest.raises(error):
                program.run(wrong)  # type: ignore[arg-type]


def test_run_keeps_its_program_and_leaks_nothing() -> None:
    def make() -> Callable[[list[int]], None]:
        builder = ProgramBuilder()
        builder.kernel(ADD, [builder.constant(np.ones(4, np.float32))] * 2 + [pointer(0)], 4)
        return builder.build().run

    out = np.zeros(4, np.float32)
    run_alone = make()
    gc.collect()
    run_alone([out.ctypes.data])
    assert (out == 2).all()
    base, bases = out.ctypes.data, [out.ctypes.data]
    before = [sys.getrefcount(thing) for thing in (base, bases, None, run_alone)]
    for _ in range(1000):
        run_alone(bases)
        run_alone([base])
    after = [sys.getrefcount(thing) for thing in (base, bases, None, run_alone)]
    assert all(abs(old - new) < 50 for old, new in zip(before, after))
    alive = weakref.ref(run_alone.__self__.slow.__self__)  # type: ignore[attr-defined]
    del run_alone
    gc.collect()
    assert alive() is None


def test_text() -> None:
    builder = ProgramBuilder()
    top, done = builder.label(), builder.label()
    builder.place(top)
    builder.jump_if_false(pointer(1), done)
    builder.kernel(ADD, [pointer(0), pointer(0, 64), pointer(2)], 100, 10)
    builder.kernel(COUNT, [pointer(0), pointer(1), size(7)], 1)
    builder.copy(pointer(2), pointer(0, 8), 16)
    builder.jump(top)
    builder.place(done)
    assert builder.build().to_text().splitlines() == [
        "   0  jump_if_false [1]+0 -> 5",
        "   1  kernel add [0]+0 [0]+64 [2]+0 for 100 by 10",
        "   2  kernel count [0]+0 [1]+0 7 for 1",
        "   3  copy [2]+0 <- [0]+8 16 bytes",
        "   4  loop -> 0",
        "   5  end",
    ]


def test_equal_kernels_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    twin = KernelSource("add", ADD.source, (F32,) * 3)
    builder = ProgramBuilder()
    builder.kernel(ADD, [pointer(0)] * 3, 4)
    builder.kernel(twin, [pointer(0)] * 3, 4)
    x = np.ones(4, np.float32)
    run(builder.build(), x)
    assert (x == 4).all()
