"""Rare arguments of elementary functions in loops of scalars: the test is inlined, and the results are right."""

from __future__ import annotations

import itertools
import re
from typing import Any

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest
from hloom.numba_backend.runtime import llvm_backend
from hloom.numba_backend.runtime.dialect import SCOPE
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter

import hloom
import hloom.numpy as jnp
from hloom import lax

TEXT = """def k(lo, hi, x, out):
    s = x[0]
    for i in range(lo, hi):
        s = sin(s) + x[i]
    out[0] = s
"""


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_a_loop_of_scalars_calls_for_rare_arguments_alone(element: str) -> None:
    kernel = KernelSource("k", TEXT, (Parameter("pointer", element), Parameter("pointer", element)))
    text = to_llvm(kernel, SCOPE, "one pass")
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        llvm_backend.optimise(module, llvm_backend.widens_straight_lines(text))
        before = str(module)
        after = str(llvm_backend.for_code_generator(module, context))
    entry = f"define void @{kernel.symbol}("
    called = [line for line in before[before.index(entry) :].split("\n}")[0].splitlines() if "@hloom." in line]
    assert called and not any(".rare" in line for line in called)
    inlined = [line for line in after[after.index(entry) :].split("\n}")[0].splitlines() if "@hloom." in line]
    assert inlined and all(".rare" in line for line in inlined)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_and_small_angles_in_turn(dtype: str) -> None:
    with hloom.enable_x64(dtype == "float64"):
        x = np.array([0.5, 1e30, -3.0, 1e15, np.inf, 2.0**40, -(2.0**31), np.nan, 1e-30], dtype)
        take = hloom.jit(lambda x: lax.scan(lambda s, v: (s, (jnp.sin(v), jnp.cos(v), jnp.tan(v))), 0, x)[1])
        together = hloom.jit(lambda x: (jnp.sin(x), jnp.cos(x), jnp.tan(x)))
        for one, other in zip(take(x), together(x), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_a_loop_of_scalars_does_not_wait_for_the_quarter_of_a_small_angle(element: str) -> None:
    kernel = KernelSource("k", TEXT, (Parameter("pointer", element), Parameter("pointer", element)))
    text = to_llvm(kernel, SCOPE, "one pass")
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        llvm_backend.optimise(module, llvm_backend.widens_straight_lines(text))
        final = str(llvm_backend.for_code_generator(module, context))
    body = final[final.index(f"define void @{kernel.symbol}(") :].split("\n}")[0]
    (test,) = re.findall(r"(%\S+) = fcmp [a-z ]+ double %\S+, 7.812500e-01\n", body)
    assert re.search(rf"br i1 {re.escape(test)},", body) and f"select i1 {test}," not in body


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scalars_and_vectors_agree_around_the_first_quarter(dtype: str) -> None:
    with hloom.enable_x64(dtype == "float64"):
        middle = np.array([np.pi / 4, 0.78125, 2.0**22], dtype)
        edges = [*middle, *np.nextafter(middle, 0), *np.nextafter(middle, 1e9), 0, 5e-324, 1e-40]
        x = np.array([*edges, *np.linspace(0, 7, 301)], dtype)
        x = np.concatenate([x, -x])
        for function in (jnp.sin, jnp.cos, jnp.tan):

            def step(zero: Any, v: Any, function: Any = function) -> Any:
                result = function(jnp.where(zero == 0, v, zero))  # each waits for the one before
                return result * 0, result

            _, one = hloom.jit(lambda x, step=step: lax.scan(step, x.dtype.type(0), x))(x)
            together = hloom.jit(function)(x)
            bits = f"u{x.itemsize}"
            np.testing.assert_array_equal(np.asarray(one).view(bits), np.asarray(together).view(bits))
            exact = [getattr(mpmath, function.__name__)(mpmath.mpf(float(v))) for v in x]
            np.testing.assert_allclose(together, np.array(exact, dtype), rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_with_slow_paths_do_not_meet_in_a_kernel(dtype: str) -> None:
    def rem(x: Any) -> Any:
        return lax.rem(x, x.dtype.type(3))

    with hloom.enable_x64(dtype == "float64"):
        x = np.array([0.1, 1, 5, -7, 300, 1e9, 1e20, -0.0, np.nan], dtype)
        for first, second in itertools.permutations((jnp.sin, jnp.cos, jnp.tan, rem), 2):
            program = hloom.jit(lambda x, f=first, g=second: f(x) + g(x))
            (kernel,) = program.lower(x).compile().kernels().values()
            assert "remainder(" in kernel or rem not in (first, second)
            alone = [np.asarray(hloom.jit(f)(x)) for f in (first, second)]
            np.testing.assert_array_equal(np.asarray(program(x)), alone[0] + alone[1], f"{first} + {second}")
