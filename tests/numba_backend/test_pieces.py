"""Convolutions and windows piece by piece, with what follows them: which do, and that results are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hloom.hlo import parse
from hloom.hlo.evaluator import evaluate
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.machine import compiling_for, target_machine
from hloom.numba_backend.output_fusion import find, fuse
from hloom.numba_backend.policy import convolutions, windows
from hloom.numba_backend.runtime import threads
from hloom.numba_backend.runtime.executor import Op

import hloom
import hloom.numpy as jnp
from hloom import lax
from support.guarded import GuardedProgram, small_pieces

FIRST, LAST = ("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")


@pytest.fixture(autouse=True)
def small_ones_too(narrow_registers: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(convolutions, "FEW_IMAGES", 2)
    monkeypatch.setattr(windows, "FEW_IMAGES", 2)
    monkeypatch.setattr(windows, "least_bytes", lambda: 0)
    monkeypatch.setattr(windows, "piece_bytes", lambda: 1 << 9)
    monkeypatch.setattr(find, "least_bytes", lambda: 0)
    yield
    threads.set_num_threads(None)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def convolve(x: Any, w: Any, numbers: tuple[str, str, str] = FIRST, **more: Any) -> Any:
    given = {"window_strides": (1, 1), "padding": "SAME"} | more
    return lax.conv_general_dilated(x, w, dimension_numbers=numbers, **given)


def relu(x: Any) -> Any:
    return jnp.maximum(x, 0)


def average(x: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, (1, 1, 3, 3), (1, 1, 1, 1), "SAME") / 9


X, W, B = numbers(7, 5, 12, 13), numbers(9, 5, 3, 3) / 7, numbers(9)
Y, V = numbers(7, 12, 13, 10), numbers(3, 3, 10, 9) / 9
R, S = numbers(7, 9, 12, 13), numbers(7, 12, 13, 9)
P, Q = numbers(9, 5, 1, 1), numbers(1, 1, 10, 9)

CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...], Op, int]] = {
    # function, arguments, its row, how many instructions are in it
    "alone": (convolve, (X, W), Op.CHAIN, 1),
    "bias and relu": (lambda x, w, b: relu(convolve(x, w) + b[:, None, None]), (X, W, B), Op.CHAIN, 2),
    "residual": (lambda x, w, r: relu(convolve(x, w) + r), (X, W, R), Op.CHAIN, 2),
    "scale of each channel": (lambda x, w, b: jnp.tanh(convolve(x, w) * b[:, None, None]), (X, W, B), Op.CHAIN, 2),
    "means of images": (lambda x, w: convolve(x, w).mean((2, 3)), (X, W), Op.CHAIN, 2),
    "the result is needed too": (lambda x, w: ((y := convolve(x, w)), jnp.tanh(y)), (X, W), Op.CHAIN, 2),
    "in another type": (lambda x, w: convolve(x, w).astype(jnp.int32), (X, W), Op.CHAIN, 2),
    "stride": (lambda x, w: relu(convolve(x, w, window_strides=(2, 2))), (X, W), Op.CHAIN, 2),
    "strides of three and two": (lambda x, w: relu(convolve(x, w, window_strides=(3, 2))), (X, W), Op.CHAIN, 2),
    "sums of all images": (lambda x, w: convolve(x, w).sum(0), (X, W), Op.CHAIN, 1),
    "images in another order": (lambda x, w: relu(convolve(x, w)[::-1]), (X, W), Op.CHAIN, 1),
    "over its own argument": (lambda x, w: (x := jnp.sin(x)) + convolve(x, w), (X, numbers(5, 5, 3, 3)), Op.CHAIN, 2),
    "channels last": (lambda x, w, b: relu(convolve(x, w, LAST) + b), (Y, numbers(3, 3, 10, 9), B), Op.CHAIN, 2),
    "channels last, no copy": (lambda x, w, s: s * convolve(x, w, LAST, padding="VALID"),
                               (Y, V, S[:, 1:-1, 1:-1]), Op.CHAIN, 2),
    "channels last, stride": (lambda x, w: relu(convolve(x, w, LAST, window_strides=(2, 3))), (Y, V), Op.CHAIN, 2),
    "depthwise": (lambda x, w: relu(convolve(x, w, window_strides=(2, 1), feature_group_count=5)), (X, W[:5, :1]),
                  Op.CHAIN, 2),
    "depthwise, no stride": (lambda x, w: relu(convolve(x, w, feature_group_count=5)), (X, W[:5, :1]), Op.CHAIN, 2),
    "one channel, one kernel": (lambda x, w: relu(convolve(x, w)), (X[:, :1], W[:1, :1]), Op.CHAIN, 0),
    "1 x 1": (lambda x, w, b: relu(convolve(x, w) + b[:, None, None]), (X, P, B), Op.GEMM, 2),
    "1 x 1, channels last": (lambda x, w, b: relu(convolve(x, w, LAST) + b), (Y, Q, B), Op.GEMM, 2),
    "average": (average, (R,), Op.CHAIN, 2),
    "average and more": (lambda x, b, r: relu(average(x) * b[:, None, None] - r), (R, B, R + 1), Op.CHAIN, 2),
    "a long window": (lambda x: 2 * lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 9, 11), (1, 1, 1, 2), "SAME"),
                      (R,), Op.CHAIN, 2),
    "a window of nothing": (lambda x: relu(lax.reduce_window(x, 1.0, lax.mul, (1, 1, 1, 2), (1, 1, 1, 1), "VALID")),
                            (R[:0],), Op.CHAIN, 0),
    "nothing to add": (lambda x, w: 1 + convolve(x, w), (X[:, :0], W[:, :0]), Op.CHAIN, 0),
    "no outputs": (lambda x, w: 1 + convolve(x, w), (X, W[:0]), Op.CHAIN, 0),
}  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_evaluator(name: str) -> None:
    """On one thread and on two; a call does not see what another one left."""
    function, args, op, length = CASES[name]
    module = parse(hloom.jit(function).lower(*args).as_text())
    expected = evaluate(module, *args)
    with small_pieces():
        executable = NumbaCompiler().compile(module)
        found = [1 + len({id(i) for i in row.after} - {id(row.origin)}) for row in executable._program.rows
                 if row.op is op]  # fmt: skip
        assert found == ([length] if length else [])
        for count in (1, 2):
            threads.set_num_threads(count)
            for _ in range(2):
                for wanted, actual in zip(expected, executable.execute(list(args)), strict=True):
                    np.testing.assert_allclose(actual, wanted, rtol=2e-5, atol=2e-5)
        for at_end in (True, False):
            guarded = GuardedProgram(module, at_end=at_end, pattern=0xFF)
            for wanted, actual in zip(expected, guarded.run(list(args)), strict=True):
                np.testing.assert_allclose(actual, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("images", "cores", "row"), [(2, 2, Op.CHAIN), (6, 3, Op.CHAIN), (3, 2, None), (2, 1, None)])
def test_a_few_images_are_pieces_if_each_thread_has_as_many(
    images: int, cores: int, row: Op | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convolutions, "FEW_IMAGES", 8)
    x = numbers(images, 5, 7, 6, 7)
    w = numbers(4, 5, 3, 3, 3)
    module = parse(hloom.jit(lambda x, w: lax.conv(x, w, (1, 1, 1), "SAME")).lower(x, w).as_text())
    (expected,) = evaluate(module, x, w)
    with small_pieces(), compiling_for(replace(target_machine(), cores=cores)):
        executable = NumbaCompiler().compile(module)
        assert [r.op for r in executable._program.rows if r.op is Op.CHAIN] == ([row] if row else [])
        (guarded,) = GuardedProgram(module, at_end=True, pattern=0xFF).run([x, w])
    for actual in (*executable.execute([x, w]), guarded):
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)


def test_scratch_memory_is_that_of_a_few_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of images that threads take at the same time have memory of their own, and no other image has."""
    monkeypatch.setattr(fuse, "LEAST_PARTS", 3)
    monkeypatch.setattr(fuse, "parts_bytes", lambda: 0)
    x = numbers(50, 5, 12, 13)
    module = parse(hloom.jit(convolve).lower(x, W).as_text())
    (expected,) = evaluate(module, x, W)
    image = 5 * 14 * 15 * 4
    with small_pieces():
        executable = NumbaCompiler().compile(module)
    assert 3 * image <= executable.memory_analysis().temp_size_in_bytes < 4 * image
    for count in (1, 2, 3):
        threads.set_num_threads(count)
        np.testing.assert_allclose(executable.execute([x, W])[0], expected, rtol=2e-5, atol=2e-5)


def test_another_number_of_images_compiles_nothing() -> None:
    def texts(images: int) -> set[str]:
        module = parse(hloom.jit(CASES["bias and relu"][0]).lower(numbers(images, 5, 12, 13), W, B).as_text())
        return {"\n".join(line for line in text.splitlines() if not line.startswith("#"))
                for text in NumbaCompiler().compile(module).kernels().values()}  # fmt: skip

    assert texts(5) == texts(8)


@pytest.mark.parametrize("stride", [1, 2])
def test_infinities_stay_where_they_are(stride: int) -> None:
    """Values that a piece left in memory for the next one to use do not reach any result."""
    x = X.copy()
    x[0, :, -1], x[3, 2] = np.nan, np.inf
    module = parse(hloom.jit(lambda x, w: relu(convolve(x, w, window_strides=(stride,) * 2))).lower(x, W).as_text())
    (expected,) = evaluate(module, x, W)
    (actual,) = NumbaCompiler().compile(module).execute([x, W])
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(actual), finite)
    np.testing.assert_allclose(np.asarray(actual)[finite], np.asarray(expected)[finite], rtol=2e-5, atol=2e-5)
