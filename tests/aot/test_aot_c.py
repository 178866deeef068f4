"""The C and C++ files: what a strict compiler says, the BLAS, memory, threads."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo.errors import ExecutionError
from hloom.numba_backend.ahead.c_functions import CFunctions
from hloom.numba_backend.ahead.c_kernels import kernel_in_c
from hloom.numba_backend.loops.reader import read as read_program

import hloom
import hloom.aot
import hloom.numpy as jnp
from hloom import lax
from tests.aot.test_aot_libraries import KIND

pytestmark = pytest.mark.skipif(shutil.which("cc") is None or shutil.which("c++") is None, reason="needs compilers")
NDArray = np.ndarray[Any, Any]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def network(x: Any, w: Any, v: Any) -> Any:
    """A bit of everything: products, batches of them, a loop, a sort, complex numbers, f16."""
    hidden = jnp.tanh(x @ w)
    batch = jnp.einsum("bij,bjk->bik", jnp.stack([hidden, 2 * hidden]), jnp.stack([v, v]))
    looped = lax.fori_loop(0, 5, lambda i, s: jnp.sin(s) + i, hidden)
    spectrum = jnp.fft.fft(looped)
    return batch, jnp.sort(looped, -1), spectrum @ spectrum.T, hidden.astype(jnp.float16), jnp.linalg.cholesky(w @ w.T)


def small(x: Any, w: Any, v: Any) -> Any:
    """Products, and a batch of them, with memory between."""
    hidden = jnp.tanh(x @ w)
    return jnp.einsum("bij,bjk->bik", jnp.stack([hidden, 2 * hidden]), jnp.stack([v, v])), hidden @ w


RNG = np.random.default_rng(0)
ARGUMENTS = tuple(RNG.standard_normal(s, dtype=np.float32) for s in ((40, 40), (40, 40), (40, 7)))


def command(folder: Path, *arguments: str) -> str:
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[:3000]
    return done.stdout


def call(library: ctypes.CDLL, program: hloom.aot.AotProgram, *inputs: NDArray, memory: bool = True) -> list[NDArray]:
    results = [np.zeros(s.shape.dimensions, s.shape.element.dtype) for s in program.results]
    arena = np.empty(program.temporary_bytes + 64, np.uint8)
    start = arena.ctypes.data + (-arena.ctypes.data) % 64
    tables = [(ctypes.c_void_p * len(g))(*[a.ctypes.data for a in g]) for g in (inputs, results)]
    function = KIND((f"{program.name}_run", library))
    assert function(*tables, ctypes.c_void_p(start if memory else None), None) == 0
    return results


@pytest.mark.slow
def test_strict_compilers_take_all_files(tmp_path: Path) -> None:
    """The C file as C11, the headers as C and as C++, the test and the benchmark as C++11."""
    hloom.aot.compile(network, ARGUMENTS, name="net", cpp_class="a::Net").write(tmp_path)
    # -O1 finds variables that may be read before they are written, and large frames
    command(tmp_path, "cc", "-std=c11", "-O1", *STRICT, "-Wframe-larger-than=40000", "-c", "net.c")
    (tmp_path / "header.c").write_text('#include "net_c.h"\nint main(void) { return NET_NUM_ARGS != 3; }\n')
    command(tmp_path, "cc", "-std=c99", *STRICT, "-c", "header.c")
    command(tmp_path, "c++", "-std=c++11", *STRICT, "-x", "c++", "-fsyntax-only", "header.c")
    for file in ("net_test.cc", "net_benchmark.cc"):
        command(tmp_path, "c++", "-std=c++11", *STRICT, "-fsyntax-only", file)


def test_constants_are_shared_and_only_those_that_are_read_are_there() -> None:
    held = np.arange(1000, dtype=np.float32)
    program = hloom.aot.compile(lambda x: (x + held, x * jnp.asarray(held.copy())), (held,))
    assert "constants[4000]" in program.c_source


# The BLAS


def scipy_blas() -> Path | None:
    """The library of SciPy's wheel; its symbols have a prefix."""
    import scipy

    found = sorted((Path(scipy.__file__).parent.parent / "scipy.libs").glob("libscipy_openblas*.so"))
    return found[0] if found else None


def test_products_call_the_blas_that_is_linked(tmp_path: Path) -> None:
    blas = scipy_blas()
    if blas is None:
        pytest.skip("this SciPy has no OpenBLAS of its own")
    program = hloom.aot.compile(small, ARGUMENTS, name="net", blas="scipy_cblas_*")
    plain = hloom.aot.compile(small, ARGUMENTS, name="plain")
    program.write(tmp_path)
    plain.write(tmp_path / "plain")
    link = [str(blas), f"-Wl,-rpath,{blas.parent}", f"-Wl,-rpath-link,{blas.parent}", "-lm"]
    command(tmp_path, "cc", "-shared", "-o", "object.so", "net.o", *link)
    command(tmp_path, "cc", "-std=c11", *STRICT, "-shared", "-fPIC", "-o", "c.so", "net.c", *link)
    command(tmp_path, "cc", "-shared", "-o", "plain.so", "plain/plain.o", "-lm")
    expected = call(ctypes.CDLL(str(tmp_path / "plain.so")), plain, *ARGUMENTS)
    undefined = command(tmp_path, "nm", "-D", "object.so") if shutil.which("nm") else "scipy_cblas_sgemm"
    assert "scipy_cblas_sgemm" in undefined
    for form in ("object.so", "c.so"):
        for a, b in zip(call(ctypes.CDLL(str(tmp_path / form)), program, *ARGUMENTS), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3)
    assert "BLAS ?= -lopenblas\nLDLIBS += $(BLAS)\n" in (tmp_path / "Makefile").read_text()
    with pytest.raises(ExecutionError, match="net calls the BLAS functions scipy_cblas_"):
        hloom.aot.load(tmp_path / "net.json")


def test_names_of_a_blas() -> None:
    source = hloom.aot.compile(lambda x: x @ x.T, ARGUMENTS[:1], blas="scipy_cblas_*64_").c_source
    assert "void scipy_cblas_sgemm64_(int order, int transpose_a, int transpose_b, int64_t m" in source
    assert "void cblas_sgemm(int order" in hloom.aot.compile(lambda x: x @ x.T, ARGUMENTS[:1], blas=True).c_source
    for wrong in ("cblas_sgemm", "a b*", "*", "x(*"):
        with pytest.raises(hloom.aot.BlasError, match="the names of CBLAS functions"):
            hloom.aot.compile(lambda x: x, ARGUMENTS[:1], blas=wrong)
    with pytest.raises(hloom.aot.TargetError, match="has no BLAS to call"):
        hloom.aot.compile(lambda x: x, ARGUMENTS[:1], blas=True, target="wasm32-unknown-unknown")


# Memory and threads

_MAIN = """\
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
#include "net.h"

static bool counting = false;
static int allocations = 0;
extern "C" void* __libc_malloc(size_t size);
extern "C" void* malloc(size_t size) {
  if (counting) ++allocations;
  return __libc_malloc(size);
}

static void Fill(Net& net) {
  for (std::size_t i = 0; i < net.arg0_count(); ++i) net.arg0_data()[i] = float(i % 7) / 7;
  for (std::size_t i = 0; i < net.arg1_count(); ++i) net.arg1_data()[i] = float(i % 5) / 5 + (i % 41 == 0) * 9;
  for (std::size_t i = 0; i < net.arg2_count(); ++i) net.arg2_data()[i] = float(i % 3) / 3;
}

int main() {
  Net first;
  Fill(first);
  counting = true;
  if (!first.Run()) return 1;
  counting = false;
  int wrong = 0;
  std::vector<std::thread> threads;
  std::vector<int> differences(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Net own;
      Fill(own);
      for (int turn = 0; turn < 20; ++turn) {
        if (!own.Run()) differences[t] = 1;
        if (!std::equal(own.result0_data(), own.result0_data() + own.result0_count(), first.result0_data()))
          differences[t] = 1;
      }
    });
  for (auto& thread : threads) thread.join();
  for (int d : differences) wrong += d;
  std::printf("%d allocations, %d threads differ\\n", allocations, wrong);
}
"""


@pytest.mark.parametrize("form", ["object", "c"])
def test_a_run_allocates_nothing_and_instances_are_for_their_threads(form: str, tmp_path: Path) -> None:
    hloom.aot.compile(small, ARGUMENTS, name="net", cpp_class="Net").write(tmp_path)
    (tmp_path / "main.cc").write_text(_MAIN)
    code = "net.o"
    if form == "c":
        command(tmp_path, "cc", "-std=c11", "-O1", "-c", "-o", "net_from_c.o", "net.c")
        code = "net_from_c.o"
    command(tmp_path, "c++", "-std=c++11", "-o", "main", "main.cc", code, "-lm", "-pthread")
    assert command(tmp_path, "./main") == "0 allocations, 0 threads differ\n"


def test_a_static_arena_needs_no_memory_of_the_caller(tmp_path: Path) -> None:
    program = hloom.aot.compile(small, ARGUMENTS, name="net", static_arena=True)
    program.write(tmp_path)
    assert program.temporary_bytes > 0
    command(tmp_path, "cc", "-shared", "-o", "object.so", "net.o", "-lm")
    command(tmp_path, "cc", "-std=c11", *STRICT, "-shared", "-fPIC", "-o", "c.so", "net.c", "-lm")
    for form in ("object.so", "c.so"):
        library = ctypes.CDLL(str(tmp_path / form))
        alone = call(library, program, *ARGUMENTS, memory=False)
        for a, b in zip(alone, call(library, program, *ARGUMENTS), strict=True):
            np.testing.assert_array_equal(a, b)
    assert "if `temporary` is NULL" in (tmp_path / "net_c.h").read_text()


@pytest.mark.slow
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    """Addresses and undefined behaviour, in the generated test."""
    probe = tmp_path / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    options = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    if subprocess.run(["cc", *options, "-o", "probe", "probe.c"], cwd=tmp_path, capture_output=True).returncode:
        pytest.skip("this compiler has no sanitizers")
    hloom.aot.compile(network, ARGUMENTS, name="net").write(tmp_path)
    command(tmp_path, "cc", "-std=c11", *options, "-c", "-o", "net_from_c.o", "net.c")
    command(tmp_path, "c++", "-std=c++11", *options, "-o", "check", "net_test.cc", "net_from_c.o", "-lm")
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(["./check"], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert "runtime error" not in done.stderr and "AddressSanitizer" not in done.stderr, done.stderr[:2000]


def test_names_of_the_printer_are_not_the_kernels() -> None:
    """The end of a loop has a variable of its own, even if the kernel has one of that name."""
    source = (
        "def k(lo, hi, out):\n"
        "    for i in range(lo, hi):\n"
        "        j_end = i * i\n"
        "        for j in range(0, minimum(j_end, 7)):\n"
        "            out[j] = 1.0\n"
    )
    program = read_program(source, ["int64", "int64", "float32*"], "k")
    text = kernel_in_c(program, ["float32*"], "k", CFunctions())
    assert "j_end_ = minimum_s64(j_end, 7); j < j_end_;" in text
