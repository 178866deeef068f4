"""Additions of counters to mixed bits are opaque to LLVM, one for each number, and nothing else is."""

from __future__ import annotations

from typing import Any

import numpy as np
from hloom.numba_backend.loops.opaque import with_opaque_sums
from hloom.numba_backend.loops.printer import lines_of
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.runtime import dialect, frontend
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter

import hloom
import hloom.numpy as jnp

ROUNDS = """        first = add(first, second)
        second = bit_xor(first, bit_or(shl(second, uint32(13)), shr_logical(second, uint32(19))))
"""


def kernel(start: str, rounds: int = 10, step: str = "") -> str:
    return f"""def mix(lo, hi, key, out):
    count = uint32(0)
    for i in range(lo, hi):
        {start}
        second = add(multiply(uint32(i), uint32(2)), key[0])
{ROUNDS * rounds}        out[i] = bit_xor(first, second)
{step}"""


def hidden(source: str) -> int:
    block = with_opaque_sums(read(source, ["int64", "int64", "uint32*", "uint32*"], "mix").body)
    assert with_opaque_sums(block) is block
    return "\n".join(lines_of(block)).count("opaque(")


def test_one_addition_for_each_number() -> None:
    assert hidden(kernel("first = add(uint32(i), key[1])")) == 1
    assert hidden(kernel("first = add(key[1], uint32(i))", rounds=20)) == 1


def test_counters_that_a_loop_carries() -> None:
    carried = kernel("first = add(count, key[1])", step="        count = add(count, uint32(3))\n")
    assert hidden(carried) == 1
    assert hidden(kernel("first = add(count, key[1])")) == 0


def test_what_has_no_counter_or_hardly_mixes_stays() -> None:
    assert hidden(kernel("first = key[1]")) == 0
    assert hidden(kernel("first = add(uint32(i), key[1])", rounds=3)) == 0
    assert hidden(kernel("first = bit_xor(uint32(i), key[1])")) == 0


def test_the_zero_is_made_once() -> None:
    parameters = (Parameter("pointer", "u32"), Parameter("pointer", "u32"))
    text = frontend.to_llvm(
        KernelSource("mix", kernel("first = opaque(add(uint32(i), opaque(key[1])))"), parameters), dialect.SCOPE
    )
    assert text.count(" asm ") == 1


def test_numbers_are_those_of_numpy() -> None:
    def mix(x: Any) -> Any:
        first, second = x + np.uint32(5), x * np.uint32(2) + np.uint32(7)
        for _ in range(12):
            first = first + second
            second = first ^ ((second << np.uint32(13)) | (second >> np.uint32(19)))
        return first ^ second

    x = np.arange(1000, dtype=np.uint32)
    got = hloom.jit(lambda: mix(jnp.arange(1000, dtype=jnp.uint32)))()
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, mix(x))
