"""pickle, copy and deepcopy of users' objects: a good copy, or an error with the alternative."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo.backend import get_compiler

import hloom
import hloom.numpy as jnp
from hloom.experimental.serialize_executable import deserialize_and_load, serialize
from support.pickling_cases import CASES, X, holding, plain


@pytest.mark.parametrize("name", CASES)
def test_copies(name: str) -> None:
    case = CASES[name]
    original = case.make()
    expected = case.show(original)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert case.show(pickle.loads(pickle.dumps(original, protocol))) == expected
    for other in (copy.copy(original), copy.deepcopy(original)):
        assert case.show(other) == expected
        if case.is_same:
            assert other is original
    assert case.show(original) == expected


def test_another_process() -> None:
    """Pickles name functions and hold values: no address, no identity, no hash of this process."""
    pickles = {name: pickle.dumps(case.make()) for name, case in CASES.items()}
    folder = str(Path(__file__).parents[1])
    program = f"import sys; sys.path.insert(0, {folder!r}); from support.pickling_cases import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(pickles), capture_output=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr.decode()
    shown = pickle.loads(run.stdout)
    assert shown == {name: case.show(case.make()) for name, case in CASES.items()}


def _local() -> Any:
    @hloom.jit
    def inner(x: Any) -> Any:
        return x

    return inner


def _changes_a_reference() -> Any:
    held = hloom.new_ref(jnp.zeros(3))

    def f(x: Any) -> Any:
        held[...] = x
        return x

    return hloom.jit(f).lower(jnp.ones(3))


def _calls_python() -> Any:
    return hloom.jit(lambda x: hloom.pure_callback(np.sin, hloom.ShapeDtypeStruct((3,), "f4"), x)).lower(jnp.ones(3))


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "a lowered program that calls Python": (_calls_python, TypeError, r"Lowered .* calls a Python function"),
    "a lowered program with references": (_changes_a_reference, TypeError, r"Lowered .* mutable arrays"),
    "a compiled program": (
        lambda: hloom.jit(plain).lower(1.0).compile(), TypeError, r"machine code.*Pickle the jitted function"
    ),
    "an executable": (
        lambda: hloom.jit(plain).lower(1.0).compile().executable, TypeError, r"cannot be pickled.*Pickle the module"
    ),
    "an executable of the evaluator": (
        lambda: get_compiler("evaluator").compile(hloom.make_hlo(plain)(1.0)), TypeError, "Pickle the module"
    ),
    "a primitive": (lambda: hloom.extend.Primitive("p"), TypeError, "known by identity"),
    "a lambda": (lambda: hloom.jit(lambda x: x), (pickle.PicklingError, AttributeError), "lambda"),
    "a local function": (_local, (pickle.PicklingError, AttributeError), "inner"),
    "a deleted array": (lambda: _deleted(), RuntimeError, "deleted"),
}  # fmt: skip


def _deleted() -> Any:
    x = jnp.ones(2)
    x.delete()
    return x


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    make, error, message = REFUSED[name]
    made = make()
    with pytest.raises(error, match=rf"(?s){message}"):
        pickle.dumps(made)


def test_a_tracer_is_copied_but_not_pickled() -> None:
    @hloom.jit
    def f(x: Any) -> Any:
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(x)
        assert copy.copy(x) is x
        assert copy.deepcopy({"a": [x]})["a"][0] is x
        return x

    f(1.0)


def test_copies_of_programs_are_themselves() -> None:
    compiled = hloom.jit(plain).lower(jnp.asarray(X)).compile()
    for made in (compiled, compiled.executable, hloom.extend.Primitive("p"), hloom.jit(lambda x: x)):
        assert copy.copy(made) is made
        assert copy.deepcopy({"a": [made]})["a"][0] is made


def test_a_copied_buffer_has_its_own_memory() -> None:
    """Two blocks with one address would give it back twice."""
    for x in (jnp.asarray(X) + 1, hloom.jit(plain)(jnp.asarray(X))):
        buffer: Any = x._buffer
        expected = np.array(x)
        for other in (copy.copy(buffer), copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
            assert other.address != buffer.address
            np.testing.assert_array_equal(np.asarray(other), expected)
            assert other.shape == buffer.shape


def test_a_deep_copy_is_not_donated_with_the_original() -> None:
    x = jnp.asarray(X) + 0
    other = copy.deepcopy(x)
    hloom.jit(plain, donate_argnums=0)(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(np.asarray(other), X)


# ---- hloom.experimental.serialize_executable

EXECUTABLES: dict[str, Any] = {
    "plain": lambda: hloom.jit(plain).lower(jnp.asarray(X)),
    "of a lambda": lambda: hloom.jit(lambda x: {"y": (x, x.sum())}).lower(jnp.asarray(X)),
    "with what it holds": lambda: hloom.jit(holding(jnp.asarray(X))).lower(jnp.asarray(X)),
}


@pytest.mark.parametrize("name", EXECUTABLES)
def test_an_executable_is_bytes(name: str) -> None:
    lowered = EXECUTABLES[name]()
    compiled = lowered.compile({"xla_allow_excess_precision": True}, target="tpu")
    again = deserialize_and_load(*serialize(compiled))
    assert again.as_text() == compiled.as_text()
    expected = hloom.tree.map(np.asarray, compiled(jnp.asarray(X)))
    hloom.tree.map(np.testing.assert_array_equal, again(jnp.asarray(X)), expected)
    with pytest.raises(TypeError, match="was compiled for"):
        again(jnp.ones(7))


def test_executables_that_cannot_be_bytes() -> None:
    with pytest.raises(ValueError, match=r"Compilation does not support serialization: .* calls a Python function"):
        serialize(_calls_python().compile())
    with pytest.raises(TypeError, match="not Lowered"):
        serialize(hloom.jit(plain).lower(1.0))
    data, given, result = serialize(hloom.jit(plain).lower(1.0).compile())
    for bad in (b"", data[:-3], data[:40], b"x" + data):
        with pytest.raises(ValueError, match="deserialize_and_load"):
            deserialize_and_load(bad, given, result)
    with pytest.raises(ValueError, match="in_tree is"):
        deserialize_and_load(data, result, result)
    with pytest.raises(ValueError, match="out_tree is"):
        deserialize_and_load(data, given, given)
    with pytest.raises(ValueError, match="for one device"):
        deserialize_and_load(data, given, result, execution_devices=[])


def test_executables_of_jax_have_the_same_interface() -> None:
    """Arguments by JAX's names."""
    data, in_tree, out_tree = serialize(hloom.jit(plain).lower(1.0).compile())
    client = hloom.devices()[0].client
    for backend in (None, "cpu", client):
        loaded = deserialize_and_load(
            serialized=data, in_tree=in_tree, out_tree=out_tree, backend=backend, execution_devices=hloom.devices()[:1]
        )
        assert float(loaded(3.0)) == 7.0


def test_arrays_of_64_bits_become_32_without_x64() -> None:
    with hloom.enable_x64(True):
        pickled = pickle.dumps([jnp.float64(4), jnp.arange(3)])
    assert [str(x.dtype) for x in pickle.loads(pickled)] == ["float32", "int32"]
    with hloom.enable_x64(True):
        assert [str(x.dtype) for x in pickle.loads(pickled)] == ["float64", "int64"]
