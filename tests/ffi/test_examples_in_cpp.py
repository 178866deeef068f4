"""C++ handlers that are compiled with XLA's header run under hloom, and the same library runs under JAX."""

from __future__ import annotations

import ctypes
import importlib
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloom

pytestmark = pytest.mark.slow  # the compiler takes six seconds

NDArray = np.ndarray[Any, Any]
X = np.random.default_rng(0).normal(size=(3, 4, 8)).astype(np.float32)
EPS = np.float32(1e-5)


class Users:
    """The functions of a program that uses these handlers, for hloom or JAX."""

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self.jax = importlib.import_module(name)
        self.ffi: Any = importlib.import_module(f"{name}.ffi")
        self.jnp = importlib.import_module(f"{name}.numpy")
        self.jax.devices()  # JAX registers what is registered before only now, types last
        for symbol in (
            *("rms_norm", "rms_norm_forward", "rms_norm_backward", "attributes", "any_buffers", "fail", "reversed"),
            *("squared_later", "fails_later", "where"),
        ):
            self.ffi.register_ffi_target(f"cc_{symbol}", self.ffi.pycapsule(library[symbol]), platform="cpu")
        for symbol in ("with_status", "with_opaque"):
            capsule = self.ffi.pycapsule(library[symbol])
            self.ffi.register_ffi_target(f"cc_{symbol}", capsule, platform="cpu", api_version=0)
        for symbol in ("counter_type_id", "counter_type_info"):
            getattr(library, symbol).restype = ctypes.c_void_p
        ctypes.c_int64.from_address(library.counter_type_id()).value = 0  # each runtime has its own numbers
        capsules = {s: self.ffi.pycapsule(getattr(library, f"counter_{s}")()) for s in ("type_id", "type_info")}
        self.ffi.register_ffi_type("Counter of the tests", capsules, platform="cpu")
        stages = {s: self.ffi.pycapsule(library[f"counter_{s}"]) for s in ("instantiate", "execute")}
        self.ffi.register_ffi_target("cc_counter", stages, platform="cpu")

    def type(self, shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
        return self.jax.ShapeDtypeStruct(shape, dtype)

    def call(self, target: str, result: Any, /, *args: Any, **attributes: Any) -> Any:
        return self.ffi.ffi_call(f"cc_{target}", result, vmap_method="broadcast_all")(*args, **attributes)

    @property
    def rms_norm(self) -> Any:
        """With its derivative."""

        @partial(self.jax.custom_vjp, nondiff_argnums=(1,))
        def rms_norm(x: Any, eps: Any) -> Any:
            return self.call("rms_norm", self.type(x.shape), x, eps=eps)

        def forward(x: Any, eps: Any) -> Any:
            y, scales = self.call("rms_norm_forward", (self.type(x.shape), self.type(x.shape[:-1])), x, eps=eps)
            return y, (scales, x)

        def backward(eps: Any, saved: Any, dy: Any) -> Any:
            return (self.call("rms_norm_backward", self.type(dy.shape), *saved, dy),)

        rms_norm.defvjp(forward, backward)
        return lambda x: rms_norm(x, EPS)

    def reference(self, x: Any) -> Any:
        return x / self.jnp.sqrt(self.jnp.mean(x * x, axis=-1, keepdims=True) + EPS)


@pytest.fixture(scope="module", params=["hloom", "jax"])
def users(request: pytest.FixtureRequest, examples: ctypes.CDLL) -> Users:
    """The functions for hloom, then those for JAX, with the same library."""
    if request.param == "jax":
        pytest.importorskip("jax")
    return Users(examples, request.param)


MAPPED: dict[str, Callable[[Users], Any]] = {
    "eager": lambda u: u.rms_norm,
    "jit": lambda u: u.jax.jit(u.rms_norm),
    "vmap": lambda u: u.jax.vmap(u.rms_norm),
    "vmap of vmap": lambda u: u.jax.jit(u.jax.vmap(u.jax.vmap(u.rms_norm), 1, 1)),
    "scan": lambda u: lambda x: u.jax.lax.scan(lambda _, row: (None, u.rms_norm(row)), None, x)[1],
    "map": lambda u: lambda x: u.jax.lax.map(u.rms_norm, x),
    "checkpoint": lambda u: u.jax.checkpoint(u.rms_norm),
}


@pytest.mark.parametrize("how", MAPPED)
def test_rms_norm(users: Users, how: str) -> None:
    f = MAPPED[how](users)
    np.testing.assert_allclose(f(X), users.reference(X), rtol=1e-5)

    def loss(norm: Any) -> Any:
        return lambda x: (norm(x) * users.jnp.arange(8.0)).sum()

    found = users.jax.grad(loss(f))(X)
    np.testing.assert_allclose(found, users.jax.grad(loss(users.reference))(X), rtol=1e-4, atol=1e-5)


def test_rms_norm_in_shard_map(users: Users) -> None:
    mesh = users.jax.make_mesh((1,), ("i",), axis_types=(users.jax.sharding.AxisType.Auto,))
    spec = users.jax.sharding.PartitionSpec("i")
    f = users.jax.shard_map(users.rms_norm, mesh=mesh, in_specs=spec, out_specs=spec)
    np.testing.assert_allclose(users.jax.jit(f)(X), users.reference(X), rtol=1e-5)


def test_it_has_no_derivative_of_its_own(users: Users) -> None:
    def f(x: Any) -> Any:
        return users.call("rms_norm", users.type(x.shape), x, eps=EPS).sum()

    with pytest.raises(ValueError, match="The FFI call to `cc_rms_norm` cannot be differentiated"):
        users.jax.grad(f)(X)


def attributes(**changed: Any) -> dict[str, Any]:
    return {
        "flag": True, "number": np.int32(-7), "factor": 0.25, "name": "abc", "sizes": np.array([1, 2, 3]),
        "range": {"low": 5, "high": 9}, **changed,
    }  # fmt: skip


def test_attributes(users: Users) -> None:
    with users.jax.enable_x64():
        found = users.call("attributes", users.type((7,), np.float64), **attributes())
    assert np.asarray(found).tolist() == [1, -7, 0.25, 3, 6, 5, 9]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "type of a number": (attributes(number=1), "Wrong scalar data type"),
    "kind": (attributes(name=1), "Wrong attribute type"),
    "one more": (attributes(more=1), "Wrong number of attributes: expected 6 but got 7"),
    "member": (attributes(range={"low": 5}), "Wrong number of attributes"),
}


@pytest.mark.parametrize("how", WRONG)
def test_wrong_attributes(users: Users, how: str) -> None:
    given, message = WRONG[how]
    with users.jax.enable_x64(), pytest.raises(users.jax.errors.JaxRuntimeError, match=message):
        np.asarray(users.call("attributes", users.type((7,), np.float64), **given))


def test_any_number_of_buffers(users: Users) -> None:
    args = users.jnp.zeros((2, 3), "bfloat16"), users.jnp.zeros((4,), "bool"), users.jnp.zeros((0, 5))
    results = [users.type((4,), np.int32), users.type((2,))]
    assert np.asarray(users.call("any_buffers", results, *args, a=1, b="c")[0]).tolist() == [3, 2, 2, 16]


def test_a_token_is_a_buffer(users: Users) -> None:
    results = [users.type((4,), np.int32), users.type((2,))]
    f = users.jax.jit(lambda x: users.call("any_buffers", results, users.jax.lax.create_token(), x, a=1, b="c")[0])
    assert np.asarray(f(users.jnp.zeros((2, 3)))).tolist() == [2, 2, 2, 24]


@pytest.mark.parametrize(("version", "name"), [(2, "with_status"), (3, "with_opaque")])
def test_a_status(users: Users, version: int, name: str) -> None:
    """JAX raises ValueError for it."""
    options = {"custom_call_api_version": version, "legacy_backend_config": "abcd" if version == 3 else None}
    f = users.jax.jit(users.ffi.ffi_call(f"cc_{name}", users.type(()), **options))
    assert f(np.float32(1)) == {2: 2, 3: 5}[version]
    message = {2: "INTERNAL: more than 5", 3: "INTERNAL: abcd, a message that is too long for a short string"}[version]
    with pytest.raises((users.jax.errors.JaxRuntimeError, ValueError), match=message):
        users.jax.block_until_ready(f(np.float32(7)))


def test_wrong_buffers(users: Users) -> None:
    wrong: list[tuple[tuple[Any, ...], Any, str]] = [
        ((), users.type((2,)), "Wrong number of arguments: expected 1 but got 0"),
        ((users.jnp.zeros(2, "int32"),), users.type((2,)), "Wrong buffer dtype: expected F32 but got S32"),
        ((X,), (users.type((2,)), users.type((2,))), "Wrong number of results: expected 1 but got 2"),
        ((X,), users.type(X.shape, np.int32), "Wrong buffer dtype"),
        ((np.float32(1),), users.type(()), "rms_norm needs rows with elements"),
    ]
    for args, result, message in wrong:
        with pytest.raises(users.jax.errors.JaxRuntimeError, match=message):
            users.jax.block_until_ready(users.call("rms_norm", result, *args, eps=EPS))


@pytest.mark.parametrize("code", range(1, 17))
def test_errors(users: Users, code: int) -> None:
    with pytest.raises(users.jax.errors.JaxRuntimeError) as caught:
        users.jax.block_until_ready(users.call("fail", users.type(()), code=code, message="as it should"))
    names = {3: "INVALID_ARGUMENT", 5: "NOT_FOUND", 12: "UNIMPLEMENTED", 16: "UNAUTHENTICATED"}
    assert str(caught.value).startswith(f"{names.get(code, '')}: as it should" if code in names else "")
    assert "as it should" in str(caught.value)


def test_a_state_for_each_program(users: Users) -> None:
    call = users.ffi.ffi_call("cc_counter", users.type((), np.int32), has_side_effect=True)
    count, other = users.jax.jit(lambda: call(start=3)), users.jax.jit(lambda: call(start=30))
    assert [int(f()) for f in (count, count, other, count)] == [3, 4, 30, 5]
    with pytest.raises(users.jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT: start is negative"):
        users.call("counter", users.type((), np.int32), start=-1)


@pytest.mark.parametrize("count", [0, 3, 10_000])
def test_a_future_of_tasks(users: Users, count: int) -> None:
    x = np.arange(count, dtype=np.float32)
    f = users.jax.jit(lambda x: users.call("squared_later", users.type((count,)), x))
    for _ in range(20):
        np.testing.assert_array_equal(f(x), x * x)


def test_a_future_with_an_error(users: Users) -> None:
    with pytest.raises(users.jax.errors.JaxRuntimeError, match="DATA_LOSS: it got lost"):
        users.jax.block_until_ready(users.call("fails_later", users.type(())))


def test_what_a_handler_knows(users: Users) -> None:
    device, threads, has_run = np.asarray(users.call("where", users.type((3,), np.int32))).tolist()
    assert device == 0 and threads >= 1
    assert has_run or users.jax is not hloom


def test_scratch_memory(users: Users) -> None:
    """XLA has none on a CPU."""
    if users.jax is not hloom:
        with pytest.raises(users.jax.errors.JaxRuntimeError, match="there is no scratch memory"):
            users.jax.block_until_ready(users.call("reversed", users.type((8,)), X[0, 0]))
        return
    np.testing.assert_array_equal(users.call("reversed", users.type((8,)), X[0, 0]), X[0, 0][::-1])


def test_the_output_in_the_page_is_real(root: Path, examples: ctypes.CDLL) -> None:
    """It needs what the examples need."""
    page = root / "docs" / "ffi.md"
    ran = subprocess.run(
        [sys.executable, str(root / "tools" / "readme.py"), str(page)], capture_output=True, text=True, timeout=200
    )
    assert ran.returncode == 0, f"run: python tools/readme.py docs/ffi.md --write\n{ran.stdout}{ran.stderr}"
