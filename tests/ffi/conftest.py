"""The libraries of handlers that the tests call, compiled once, and their registration."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import hloom
from hloom import ffi
from hloom.errors import UnsupportedError

HERE = Path(__file__).parent


def build(source: str, folder: Path, *options: str) -> ctypes.CDLL:
    """The shared library of a file of this folder."""
    compiler = "g++" if source.endswith("cc") else "gcc"
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    target = folder / f"{source}.so"
    command = [compiler, "-shared", "-fPIC", *options, "-o", target, HERE / source, "-lpthread"]
    subprocess.run([*map(str, command)], check=True)
    return ctypes.CDLL(str(target))


HANDLERS = (
    "scaled", "copied", "described", "described_with_tokens", "attributes_of", "first_incremented", "always_fails",
    "reversed", "too_much_scratch", "squared", "squared_later", "fails_later", "by_own_thread", "where",
    "asks_for", "registers",
)  # fmt: skip


def pointer(library: ctypes.CDLL, name: str) -> Any:
    """A capsule with the address of a variable of a library."""
    return ffi.pycapsule(ctypes.addressof(ctypes.c_int64.in_dll(library, name)))


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """`handlers.c`, with all its handlers registered under their names."""
    found = build("handlers.c", tmp_path_factory.mktemp("ffi"), "-O1", "-Wall")
    for name in HANDLERS:
        ffi.register_ffi_target(name, ffi.pycapsule(found[name]))
    ffi.register_ffi_type(
        "counter", {"type_id": pointer(found, "counter_type"), "type_info": pointer(found, "counter_info")}
    )
    stages = {s: ffi.pycapsule(found[f"counter_{s}"]) for s in ("instantiate", "prepare", "initialize", "execute")}
    ffi.register_ffi_target("counter", {s: stages[s] for s in ("instantiate", "execute")})
    ffi.register_ffi_target("staged_counter", stages)
    for name in ("with_status", "with_opaque_and_status"):
        ffi.register_ffi_target(name, ffi.pycapsule(found[name]), api_version=0)
    return found


@pytest.fixture(params=["numba", "evaluator"])
def backend(request: pytest.FixtureRequest) -> Any:
    """Each backend, one after the other."""
    before = hloom.config.hloom_backend
    hloom.config.update("hloom_backend", request.param)
    yield request.param
    hloom.config.update("hloom_backend", before)


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """`examples.cc`, compiled with the header of the installed jaxlib; nothing is registered."""
    try:
        headers = ffi.include_dir()
    except UnsupportedError:
        pytest.skip("jaxlib, which has XLA's header, is not installed")
    return build("examples.cc", tmp_path_factory.mktemp("examples"), "-std=c++17", "-O1", "-w", "-I", headers)
