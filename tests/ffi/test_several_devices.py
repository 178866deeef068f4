"""Handlers in programs over several devices: each device calls them with its part, and knows its number."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, sys
import numpy as np
import hloom
import hloom.numpy as jnp
from hloom import P, NamedSharding, ShapeDtypeStruct, ffi
from hloom.extend.core import Primitive
from hloom.interpreters import mlir

library = ctypes.CDLL(sys.argv[1])
for name in ("scaled", "where", "squared_later", "always_fails"):
    ffi.register_ffi_target(name, ffi.pycapsule(library[name]))
mesh = hloom.make_mesh((4,), ("i",), axis_types=(hloom.sharding.AxisType.Auto,))
calls = ctypes.c_int64.in_dll(library, "calls_of_scaled")
X = np.arange(80, dtype=np.float32).reshape(8, 10)


def scaled(x):
    return ffi.ffi_call("scaled", ShapeDtypeStruct(x.shape, x.dtype))(x, scale=np.float32(2))


def mapped(f, out=P("i")):
    return hloom.jit(hloom.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=out, check_vma=False))


# each device calls the handler with its part
f = mapped(scaled)
np.testing.assert_array_equal(f(X), 2 * X)
assert calls.value == 4, calls.value
assert "all-gather" not in f.lower(X).compile().as_text()

# and knows its number
where = mapped(lambda x: ffi.ffi_call("where", ShapeDtypeStruct((3,), np.int64))())
found = np.asarray(where(X)).reshape(4, 3)
assert found[:, 1].tolist() == [0, 1, 2, 3], found

# tasks and futures of four devices at once
g = mapped(lambda x: ffi.ffi_call("squared_later", ShapeDtypeStruct(x.shape, x.dtype))(x))
for _ in range(20):
    np.testing.assert_array_equal(g(X), X * X)

# an error on one device
def fails(x):
    bad = lambda: ffi.ffi_call("always_fails", ShapeDtypeStruct((2, 10), np.float32))(code=5)
    return hloom.lax.cond(hloom.lax.axis_index("i") == 2, bad, lambda: x)
try:
    mapped(fails)(X)
    raise AssertionError("no error")
except hloom.errors.JaxRuntimeError as error:
    assert "NOT_FOUND: it" in str(error), error
np.testing.assert_array_equal(f(X), 2 * X)

# without shard_map a call is made with whole arrays, unless its target shares batches
divided = hloom.device_put(X, NamedSharding(mesh, P("i")))
calls.value = 0
h = hloom.jit(scaled, out_shardings=NamedSharding(mesh, P("i")))
np.testing.assert_array_equal(h(divided), 2 * X)
assert "all-gather" in h.lower(divided).compile().as_text()

ffi.register_ffi_target_as_batch_partitionable("scaled")
batches = Primitive("batches")
batches.def_abstract_eval(lambda x, scale: x)
extra = {"mhlo.frontend_attributes": {"num_batch_dims": "1"}}
mlir.register_lowering(batches, ffi.ffi_lowering("scaled", extra_attributes=extra))
calls.value = 0
k = hloom.jit(lambda x: batches.bind(x, scale=np.float32(2)), out_shardings=NamedSharding(mesh, P("i")))
np.testing.assert_array_equal(k(divided), 2 * X)
assert calls.value == 4 and "all-gather" not in k.lower(divided).compile().as_text()
print("ok")
"""


@pytest.mark.parametrize("backend", ["numba", "evaluator"])
def test_on_four_devices(library: ctypes.CDLL, backend: str, root: Path) -> None:
    environment = {**os.environ, "HLOOM_NUM_DEVICES": "4", "HLOOM_BACKEND": backend}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, library._name], capture_output=True, text=True, timeout=120, env=environment,
        cwd=root,
    )  # fmt: skip
    assert ran.returncode == 0 and ran.stdout == "ok\n", ran.stderr
