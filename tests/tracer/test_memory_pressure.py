"""Where memory is limited: what the pool keeps for later is given back before anything fails."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest
from hloom.hlo.support import memory_pressure
from hloom.numba_backend.runtime import memory

START = """
import resource, sys
import numpy as np
import hloom, hloom.numpy as jnp
from hloom.numba_backend.runtime import loader, memory

MIB = 1 << 20
double = hloom.jit(lambda x: x + x)
chain = hloom.jit(lambda x: jnp.cumsum(x * 2) @ jnp.ones(x.shape[0], x.dtype))

# warm up: what follows compiles nothing and starts no thread
small = jnp.ones(1000)
double(small), chain(small), small + small, np.asarray(double(small)), jnp.array(np.ones(5))

def limited(left, unused, size):
    "Leave `left` MiB of address space, after the pool has `unused` MiB in blocks of `size` bytes."
    blocks = [memory.allocate(size) for _ in range(unused * MIB // size)]
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + left * MIB, -1))
    blocks.clear()
"""
BIG = 8 << 20
SMALL = 32 << 10
CASES = {
    "a result": ("limited(10, 168, BIG)", "x = double(np.float32(1)); y = memory.allocate(20 * MIB)"),
    "a compiled call": ("x = jnp.ones(20 * MIB // 4); limited(10, 168, BIG)", "assert float(double(x)[7]) == 2"),
    "an arena": ("x = jnp.ones(20 * MIB // 4); chain(x); limited(5, 168, BIG + 5000)", "chain(x)"),
    "small blocks": ("limited(10, 100, SMALL)", "memory.allocate(60 * MIB)"),
    "an eager operation": ("x = jnp.ones(20 * MIB // 4); limited(10, 168, BIG)", "assert float((x + x)[7]) == 2"),
    "full": ("limited(10, 168, BIG)", "assert float(jnp.ones(20 * MIB // 4)[7]) == 1"),
    "a copy of NumPy's": ("x = np.ones(20 * MIB // 4, 'f4'); limited(10, 168, BIG)", "jnp.array(x)"),
    "a copy for NumPy": ("x = double(np.ones(20 * MIB // 4, 'f4')); limited(10, 168, BIG)", "np.array(x)"),
    "a conversion": ("x = double(np.ones(20 * MIB // 4, 'f4')); limited(10, 168, BIG)", "np.asarray(x, 'f8')"),
    "a donation that must copy": (
        "f = hloom.jit(lambda x: x + 1, donate_argnums=0); f(jnp.ones(20 * MIB // 4)); x = jnp.ones(20 * MIB // 4);"
        "y = np.asarray(x); limited(10, 168, BIG)",
        "assert float(f(x)[3]) == 2 == y[3] + 1",
    ),
    "the evaluator": (
        "x = np.ones(20 * MIB // 4, 'f4'); hloom.config.update('hloom_backend', 'evaluator');"
        "f = hloom.jit(lambda x: x * 2); f(x); limited(10, 168, BIG)",
        "f(x)",
    ),
    "a function of the user": (
        "hloom.register_custom_call('fn', lambda x: x);"
        "t = 'HloModule m ENTRY e { x = f32[5242880] parameter(0) ROOT y = f32[5242880] custom-call(x),'"
        "'custom_call_target=\"fn\" }'; x = np.ones(20 * MIB // 4, 'f4'); hloom.run_hlo(t, x); limited(10, 168, BIG)",
        "hloom.run_hlo(t, x)",
    ),
    "machine code": ("code = bytes(10 * MIB); limited(1, 50, BIG)", "loader._executable(code)"),
}


@pytest.mark.one_in(2)
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS and /proc are Linux's")
@pytest.mark.parametrize("name", CASES)
def test_unused_blocks_are_given_back(name: str) -> None:
    before, then = CASES[name]
    program = START + f"BIG, SMALL = {BIG}, {SMALL}\n{before}\n{then}\nprint('done')\n"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert run.stdout == "done\n", run.stderr


def test_slabs_without_a_used_block_are_given_back() -> None:
    size = 20 << 10
    blocks = [memory.allocate(size) for _ in range(200)]
    kept = blocks[100]
    address = kept.address
    memory.release_unused()
    blocks.clear()
    assert memory.release_unused() >= 10 * 256 << 10
    assert kept.address == address
    ctypes.memset(kept.address, 7, size)
    again = [memory.allocate(size) for _ in range(300)]
    assert len({b.address for b in again} | {address}) == 301
    for block in again:
        ctypes.memset(block.address, 1, size)
    assert ctypes.string_at(kept.address, size) == bytes([7]) * size


def test_it_is_tried_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def fails(times: int, x: int) -> int:
        calls.append("make")
        if len(calls) < 2 * times:
            raise MemoryError
        return x

    def release() -> int:
        calls.append("release")
        return 5

    monkeypatch.setattr(memory_pressure, "_releases", [release])
    assert memory_pressure.allocating(fails, 1, x=3) == 3
    assert calls == ["make", "release", "make"]
    with pytest.raises(MemoryError):
        memory_pressure.allocating(fails, 9, x=3)
    monkeypatch.setattr(memory_pressure, "_releases", [])
    calls.clear()
    with pytest.raises(MemoryError):
        memory_pressure.allocating(fails, 9, x=3)
    assert calls == ["make"]
