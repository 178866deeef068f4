"""Whole programs on the Numba backend: random modules; promises about sizes, memory, donation, concurrency."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest
from hloom.hlo.builder import make_computation, make_constant, make_instruction, make_module, make_parameter, make_tuple
from hloom.hlo.ops.movement import BroadcastAttributes
from hloom.hlo.ops.reduce import ReduceAttributes
from hloom.hlo.passes.simplify.reducers import binary_reducer
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.runtime.store import default_store

from hloom import hlo
from tests.support.random_modules import random_arguments, random_module

F32 = hlo.ElementType.F32
O = hlo.Opcode  # noqa: E741


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(60))
def test_random_module(seed: int) -> None:
    module = random_module(random.Random(seed))
    arguments = random_arguments(module, seed, special=False)
    expected = hlo.evaluate(module, *arguments)
    actual = NumbaCompiler().compile(module).execute(arguments)
    for got, want in zip(actual, expected, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        if want.dtype.kind in "fc":
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(got, want)


def softmax_module(rows: int, columns: int) -> hlo.HloModule:
    x = make_parameter(0, hlo.Shape.array(F32, (rows, columns)))

    def reduced(value: hlo.HloInstruction, opcode: hlo.Opcode, init: float) -> hlo.HloInstruction:
        operands = (value, make_constant(np.float32(init)))
        return make_instruction(O.REDUCE, operands, ReduceAttributes((1,), binary_reducer(opcode, F32)))

    def spread(value: hlo.HloInstruction) -> hlo.HloInstruction:
        return make_instruction(O.BROADCAST, (value,), BroadcastAttributes((0,)), x.shape)

    shifted = make_instruction(O.SUBTRACT, (x, spread(reduced(x, O.MAXIMUM, -np.inf))))
    exp = make_instruction(O.EXP, (shifted,))
    root = make_instruction(O.DIVIDE, (exp, spread(reduced(exp, O.ADD, 0))))
    return make_module("softmax", make_computation("main", root, [x]))


def compiled_kernels() -> int:
    statistics = default_store().statistics
    return statistics.compiled + statistics.loaded_from_disk


def test_new_sizes_do_not_compile() -> None:
    NumbaCompiler().compile(softmax_module(40, 70))
    before = compiled_kernels()
    for rows, columns in ((33, 70), (40, 71), (2, 5000), (700, 20)):
        x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
        (got,) = NumbaCompiler().compile(softmax_module(rows, columns)).execute([x])
        e = np.exp(x - x.max(1, keepdims=True))
        np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=1e-5)
    assert compiled_kernels() == before


def scaled_module(factor: float) -> hlo.HloModule:
    x = make_parameter(0, hlo.Shape.array(F32, (100,)))
    c = make_instruction(O.BROADCAST, (make_constant(np.float32(factor)),), BroadcastAttributes(()), x.shape)
    return make_module("scaled", make_computation("main", make_instruction(O.MULTIPLY, (x, c)), [x]))


def test_new_constants_do_not_compile() -> None:
    NumbaCompiler().compile(scaled_module(0.5))
    before = compiled_kernels()
    x = np.arange(100, dtype=np.float32)
    for factor in (0.25, -3.0, 1e30):
        (got,) = NumbaCompiler().compile(scaled_module(factor)).execute([x])
        np.testing.assert_array_equal(got, x * np.float32(factor))
    assert compiled_kernels() == before


def test_softmax_is_one_kernel() -> None:
    executable = NumbaCompiler().compile(softmax_module(40, 70))
    assert len(executable.kernels()) == 1


def test_donated_memory_is_reused() -> None:
    x = make_parameter(0, hlo.Shape.array(F32, (100,)))
    module = make_module("twice", make_computation("main", make_instruction(O.ADD, (x, x)), [x]))
    executable = NumbaCompiler().compile(module, donated=[0])
    assert executable.memory_analysis().alias_size_in_bytes == 400
    value = np.arange(100, dtype=np.float32)
    (got,) = executable.execute([value])
    np.testing.assert_array_equal(got, 2 * np.arange(100))
    np.testing.assert_array_equal(value, np.arange(100), err_msg="execute must not write to the caller's array")


def test_concurrent_calls() -> None:
    executable = NumbaCompiler().compile(softmax_module(64, 1000))
    x = np.random.default_rng(0).standard_normal((64, 1000)).astype(np.float32)
    (expected,) = executable.execute([x])
    results: list[np.ndarray] = []

    def work() -> None:
        results.extend(executable.execute([x])[0] for _ in range(30))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 120
    assert all(np.array_equal(r, expected) for r in results)


def test_strided_and_foreign_arguments() -> None:
    executable = NumbaCompiler().compile(softmax_module(4, 6))
    big = np.random.default_rng(0).standard_normal((8, 12)).astype(np.float32)
    (expected,) = executable.execute([np.ascontiguousarray(big[::2, ::2])])
    np.testing.assert_array_equal(executable.execute([big[::2, ::2]])[0], expected)
    np.testing.assert_array_equal(executable.execute([np.asfortranarray(big[::2, ::2])])[0], expected)


@pytest.mark.parametrize(
    "argument", [np.zeros((4, 7), np.float32), np.zeros((4, 6), np.float64), np.zeros((24,), np.float32)]
)
def test_wrong_arguments_are_refused(argument: np.ndarray) -> None:
    executable = NumbaCompiler().compile(softmax_module(4, 6))
    with pytest.raises(hlo.ExecutionError, match=r"argument 0 of softmax must be f32\[4,6\]"):
        executable.execute([argument])


def test_wrong_number_of_arguments() -> None:
    executable = NumbaCompiler().compile(softmax_module(4, 6))
    with pytest.raises(hlo.ExecutionError, match="takes 1 arrays, got 2"):
        executable.execute([np.zeros((4, 6), np.float32)] * 2)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (1, 7), (7, 1), (0, 0)])
def test_degenerate_sizes(shape: tuple[int, int]) -> None:
    x = np.ones(shape, np.float32)
    (got,) = NumbaCompiler().compile(softmax_module(*shape)).execute([x])
    assert got.shape == shape
    np.testing.assert_allclose(got, np.full(shape, 1 / max(shape[1], 1), np.float32), rtol=1e-6)


def test_several_results_and_scalars() -> None:
    x = make_parameter(0, hlo.Shape.array(F32))
    root = make_tuple([make_instruction(O.EXP, (x,)), x, x])
    module = make_module("scalars", make_computation("main", root, [x]))
    results = NumbaCompiler().compile(module).execute([np.float32(1.5)])
    np.testing.assert_allclose(results, [np.exp(1.5), 1.5, 1.5], rtol=1e-6)
