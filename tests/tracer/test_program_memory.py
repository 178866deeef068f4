"""The memory of programs: bounded while a function sees ever new shapes, given back by `clear_caches`."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hloom.tracer import aval
from hloom.tracer.aval import ShapedArray
from hloom.tracer.sharding.placed_operations import _places_of_op

import hloom
import hloom.numpy as jnp

linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

SHAPES = """
import gc, resource, sys
import numpy as np
import hloom, hloom.numpy as jnp

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

f = hloom.jit(lambda x: jnp.tanh(x) @ jnp.ones(x.shape[0], x.dtype) * 2 + x.sum())
for n in (1, 2, 3):
    f(np.ones(n, np.float32))
hloom.clear_caches()
gc.collect()
blocks, start = sys.getallocatedblocks(), resident()
for n in range(4, 6_004):
    assert abs(float(f(np.ones(n, np.float32))) - (np.tanh(1.0) * 2 + 1) * n) < 1e-3 * n
    if n == 4_800:
        gc.collect()
        middle = resident()
gc.collect()
most, end = sys.getallocatedblocks(), resident()
hloom.clear_caches()
gc.collect()
left, kept = sys.getallocatedblocks(), f._cache_size()
assert abs(float(f(np.ones(7, np.float32))) - (np.tanh(1.0) * 2 + 1) * 7) < 1e-3
print(start, middle, end, blocks, most, left, kept)
"""


@linux
@pytest.mark.slow
def test_six_thousand_shapes_of_one_function() -> None:
    run = subprocess.run([sys.executable, "-c", SHAPES], capture_output=True, text=True, timeout=1500)
    assert run.returncode == 0, run.stderr
    start, middle, end, blocks, most, left, kept = map(int, run.stdout.split())
    assert end - middle < 16 << 20, "after 4,800 shapes memory grows no more"
    assert end - start < 200 << 20
    assert left - blocks < 0.05 * (most - blocks), "clear_caches frees what programs took"
    assert kept == 0


def _ours() -> Counter[str]:
    gc.collect()
    return Counter(type(o).__qualname__ for o in gc.get_objects() if str(type(o).__module__).startswith("hloom."))


def _code() -> int:
    """Bytes of machine code outside of files."""
    total = 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split()
        if "x" in fields[1] and len(fields) == 5:
            first, last = (int(end, 16) for end in fields[0].split("-"))
            total += last - first
    return total


FUNCTIONS = [
    lambda x: x * 3 - 1,
    lambda x: jnp.tanh(x) / (x + 2),
    lambda x: jnp.cumsum(x) + x.max(),
    lambda x: hloom.lax.fori_loop(0, 3, lambda i, c: c * 2 + x, x),
    lambda x: hloom.grad(lambda y: (y**3).sum())(x),
]


@linux
def test_clear_caches_gives_code_and_programs_back() -> None:
    hloom.config.update("hloom_backend", "numba")
    for function in FUNCTIONS:
        hloom.jit(function)(jnp.ones(7))
    hloom.clear_caches()
    objects, code = _ours(), _code()
    for _ in range(2):
        results = [np.asarray(hloom.jit(function)(jnp.ones(7))) for function in FUNCTIONS]
    assert _code() > code
    more = _ours()
    assert more["Program"] >= objects["Program"] + len(FUNCTIONS)
    hloom.clear_caches()
    after = _ours()
    assert _code() <= code
    for kind in ("HloModule", "HloComputation", "HloInstruction", "NumbaExecutable", "Program", "Code"):
        assert after[kind] <= objects[kind], kind
    for result, function in zip(results, FUNCTIONS, strict=True):
        np.testing.assert_array_equal(np.asarray(hloom.jit(function)(jnp.ones(7))), result)


def test_a_running_program_keeps_its_code() -> None:
    """A function of the user, called by the program, clears everything while the program runs."""
    hloom.config.update("hloom_backend", "numba")
    text = """
HloModule m
ENTRY main {
  x = f32[4] parameter(0)
  a = f32[4] tanh(x)
  y = f32[4] custom-call(a), custom_call_target="clears", custom_call_has_side_effect=true
  z = f32[4] exponential(y)
  ROOT r = f32[4] add(z, z)
}
"""

    def clears(x: np.ndarray) -> np.ndarray:
        hloom.clear_caches()
        gc.collect()
        return x

    hloom.register_custom_call("clears", clears)
    try:
        x = np.arange(4, dtype=np.float32)
        for _ in range(3):
            (result,) = hloom.run_hlo(text, x)
            np.testing.assert_allclose(result, 2 * np.exp(np.tanh(x)), rtol=1e-6)
    finally:
        hloom.unregister_custom_call("clears")


def test_types_that_nobody_uses_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aval, "MAX_RECENT", 100)
    kept = ShapedArray((12345, 3), np.float32, True)
    key = hloom.random.split(hloom.random.key(0), 77).aval
    gone = weakref.ref(ShapedArray((54321, 3), np.float32))
    for n in range(1000):
        ShapedArray((n, 777), np.int8)
    gc.collect()
    assert gone() is None
    assert ShapedArray((12345, 3), "float32", weak_type=True) is kept
    assert ShapedArray([12345, 3], "float32", weak_type=True) is kept
    assert ShapedArray((77,), key.dtype) is key
    assert key.storage is ShapedArray((77, 2), np.uint32)
    assert kept.storage is kept


def test_operations_on_placed_arrays_are_forgotten() -> None:
    place = hloom.NamedSharding(hloom.make_mesh((1,), ("d",)), hloom.P())
    limit = hloom.device_put(100.0, place)
    body = lambda x: 3 * x  # noqa: E731
    hloom.lax.while_loop(lambda x: x < limit, body, limit / 50)
    known = weakref.ref(body)
    del body
    hloom.clear_caches()
    gc.collect()
    assert known() is None
    assert _places_of_op.cache_info().currsize == 0
