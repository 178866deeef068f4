"""hloom.aot: feeds, fetches, frozen values, files; results of the object code and of the C code."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo.backend import SCHEDULES
from hloom.hlo.errors import ExecutionError, ScheduleError, UnsupportedError

import hloom
import hloom.aot
import hloom.numpy as jnp
from hloom import hlo, lax
from hloom.aot import FeedError, IdentifierError, TargetError
from hloom.aot.spec import SpecError, read_spec
from hloom.command_line import main as command_line

NDArray = np.ndarray[Any, Any]
HAS_CC = shutil.which("cc") is not None and shutil.which("c++") is not None and shutil.which("make") is not None
needs_cc = pytest.mark.skipif(not HAS_CC, reason="needs a C and a C++ compiler, and make")

MATMUL = """\
HloModule graph

ENTRY main {
  x_hold = f32[2,3] parameter(0)
  y_hold = f32[3,2] parameter(1)
  z = f32[2,2] parameter(2)
  x_y_prod = f32[2,2] dot(x_hold, y_hold), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT sum = f32[2,2] add(x_y_prod, z)
}
"""


def loaded(program: hloom.aot.AotProgram, folder: Path) -> hloom.aot.LoadedProgram:
    program.write(folder)
    return hloom.aot.load(folder / f"{program.name}.json")


def net(params: Any, x: Any) -> Any:
    hidden = jnp.tanh(x @ params["w"] + params["b"])
    return {"probabilities": hloom.nn.softmax(hidden), "label": jnp.argmax(hidden, -1)}


def network() -> tuple[dict[str, NDArray], NDArray]:
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal((7, 5), dtype=np.float32), rng.standard_normal(5, dtype=np.float32)
    return {"w": w, "b": b}, rng.standard_normal((3, 7), dtype=np.float32)


PARAMS, X = network()


def loop(x: Any) -> Any:
    return lax.fori_loop(0, 10, lambda i, v: jnp.sin(v) + i, x)


def rows(x: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] @ s[1] / 40), (0, x))[1]


def branches(k: Any, x: Any) -> Any:
    return lax.switch(k, [jnp.sin, jnp.cos, lambda v: jnp.sort(v, axis=0)], x)


HELD = np.arange(6, dtype=np.float32)


def spec_function() -> Any:
    return net, (PARAMS, X)


FUNCTIONS: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("network", net, (PARAMS, X)),
    ("native loop", loop, (np.linspace(0, 1, 5, dtype=np.float32),)),
    ("loop of rows", rows, (np.eye(40, dtype=np.float32) * 3 + 1,)),
    ("branches", branches, (np.int32(2), X)),
    ("branch out of range", branches, (np.int32(-7), X)),
    ("a constant", lambda x: x * HELD, (np.ones(6, np.float32),)),
    ("an argument as it is", lambda x: (x, x + 1), (X,)),
    ("unused", lambda x, y: x - 1, (X, np.ones(3, np.int8))),
    ("no elements", lambda x: x.sum(), (np.ones((0, 4), np.float32),)),
    ("scalars", lambda x: x**2, (np.float64(3),)),
    ("complex", lambda x: jnp.exp(x) @ x.T, (np.ones((2, 3), np.complex64) * (1 + 2j),)),
    ("half", lambda x: jnp.exp(x) + x, (np.linspace(-1, 1, 9).astype(np.float16),)),
    ("bfloat16", lambda x: jnp.tanh(x), (np.linspace(-1, 1, 9).astype(ml_dtypes.bfloat16),)),
    ("integers", lambda x, y: (x // y, x % y, x << 2, x.sum()), (np.arange(-5, 7), np.arange(1, 13))),
    ("bools", lambda x: (~x, x.any()), (np.array([True, False]),)),
    ("convolution", lambda x, k: lax.conv(x, k, (1, 1), "SAME"), (np.ones((2, 3, 9, 9), np.float32),
                                                                  np.ones((4, 3, 3, 3), np.float32))),
    ("random bits", lambda s: hloom.random.bits(hloom.random.key(s), (9,)), (np.int32(3),)),
    ("products", lambda x, y: (x @ y, y[:, 0] @ x.T, jnp.einsum("ij,kj->ki", x, x)),
     (np.arange(700, dtype=np.float32).reshape(20, 35) / 99, np.ones((35, 33), np.float32))),
]  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("what", "function", "args"), FUNCTIONS, ids=[f[0] for f in FUNCTIONS])
def test_results_are_those_of_jit(what: str, function: Any, args: Any, tmp_path: Path) -> None:
    program = hloom.aot.compile(function, args)
    found = loaded(program, tmp_path)(*[np.asarray(jnp.asarray(a)) for a in hloom.tree.leaves(args)])
    expected = [np.asarray(v) for v in hloom.tree.leaves(hloom.jit(function)(*args))]
    given = found if isinstance(found, tuple) else (found,)
    assert len(given) == len(expected)
    for a, b in zip(given, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(np.asarray(a, b.dtype), b, rtol=2e-5, atol=1e-6)


@needs_cc
@pytest.mark.slow
@pytest.mark.parametrize("form", ["object", "c"])
def test_generated_tests_pass_in_both_forms(form: str, tmp_path: Path) -> None:
    for number, (_, function, args) in enumerate(FUNCTIONS):
        folder = tmp_path / str(number)
        hloom.aot.compile(function, args, name="program", cpp_class=f"a::b::Program{number}").write(folder)
        run = subprocess.run(["make", "test", f"FORM={form}"], cwd=folder, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr
        assert "Success" in run.stdout


@needs_cc
@pytest.mark.slow
@pytest.mark.parametrize("form", ["object", "c"])
def test_the_example_reads_digits_in_cpp_as_in_python(form: str, root: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(root / "examples" / "deploy_digits.py"), "--digits", "--epochs", "1"]
    run = subprocess.run([*command, "--form", form, "--folder", str(tmp_path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = [line.split()[1] for line in run.stdout.splitlines() if " test digits read right" in line]
    assert len(found) == 2
    assert found[0] == found[1]
    assert float(found[0].rstrip("%")) > 60


SEED_MAIN = """\
#include <algorithm>
#include <iostream>
#include "test_graph_tfmatmul.h"

int main() {
  foo::bar::MatMulComp matmul;
  const float args[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::copy(args + 0, args + 6, matmul.arg0_data());
  std::copy(args + 6, args + 12, matmul.arg1_data());
  matmul.Run();
  foo::bar::MatMulComp other(foo::bar::MatMulComp::AllocMode::RESULTS_AND_TEMPS_ONLY);
  std::cout << matmul.result0(0, 0) << ' ' << matmul.result0(1, 1) << ' ' << matmul.arg0(1, 2) << ' ';
  std::cout << other.Run() << ' ' << other.error_message() << '\\n';
  other.set_arg0_data(args);
  other.set_arg1_data(args + 6);
  std::cout << other.Run() << other.error_message() << ' ' << other.result0(0, 0) << '\\n';
}
"""
PBTXT = """\
# The order of feeds is that of arguments.
feed { id { node_name: "x_hold" } shape { dim { size: 2 } dim { size: 3 } } }
feed {
  id { node_name: "y_hold" }
  shape { dim { size: 3 } dim { size: 2 } }
}
fetch { id { node_name: "x_y_prod" } }
"""


@needs_cc
def test_the_example_of_the_seeds(tmp_path: Path) -> None:
    """tfcompile's page: a product of two matrices, configured by a text proto, called from C++."""
    (tmp_path / "graph.hlo").write_text(MATMUL)
    (tmp_path / "config.pbtxt").write_text(PBTXT)
    options = ["--name", "test_graph_tfmatmul", "--cpp-class", "foo::bar::MatMulComp", "-o", str(tmp_path)]
    command = [sys.executable, "-m", "hloom", "aot", "graph.hlo", "--config", "config.pbtxt", *options]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "arg0  x_hold: f32[2,3]" in run.stderr
    (tmp_path / "main.cc").write_text(SEED_MAIN)
    sources = ["main.cc", "test_graph_tfmatmul.o", "-lm", "-o", "main"]
    command = ["c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", *sources]
    build = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert build.returncode == 0, build.stderr
    said = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True).stdout.splitlines()
    assert said[0].startswith("58 154 6 0 an argument has no buffer")
    assert said[1] == "1 58"


def test_feeds_and_fetches_are_chosen_and_the_rest_is_left_out() -> None:
    program = hloom.aot.compile(net, (PARAMS, X), feeds=["x", "params['b']", "params.w"], fetches=["label"])
    assert [s.name for s in program.arguments] == ["x", "params.b", "params.w"]
    assert [s.name for s in program.results] == ["label"]
    assert "exponential" not in program.module.to_text()
    by_number = hloom.aot.compile(net, (PARAMS, X), feeds=[2, 0, 1], fetches=[1, 0])
    assert [s.name for s in by_number.arguments] == ["x", "params.b", "params.w"]
    assert [s.name for s in by_number.results] == ["probabilities", "label"]
    below = hloom.aot.compile(net, (PARAMS, X), feeds=["params", "x"])
    assert [s.name for s in below.arguments] == ["params.b", "params.w", "x"]


def test_a_program_has_the_schedules_of_its_module() -> None:
    columns, compared = (
        hloom.schedule(lambda x: x @ x.T, {"dot": "Accumulate('j')\nParallel(('i',))"}, check=check)
        for check in (False, True)
    )
    x = np.ones((30, 40), np.float32)
    found = columns.lower(x)  # type: ignore[attr-defined]
    module = replace(found.module, frontend_attributes=((SCHEDULES, "dot:\n Accumulate('j')\n Parallel(('i',))"),))
    plain = hloom.aot.compile(lambda x: x @ x.T, (x,)).c_source
    sources = ((columns, (x,)), (compared, (x,)), (found,), (module,))
    first, *others = [hloom.aot.compile(*each).c_source for each in sources]
    assert "panel" in plain and "panel" not in first and all(
        re.findall(r"for \(.*", other) == re.findall(r"for \(.*", first) for other in others
    )
    unknown = hloom.schedule(lambda x: x @ x.T, {"dog": "Vectors(256)"})
    with pytest.raises(ScheduleError, match="no kernel dog; the program has"):
        str(hloom.aot.compile(unknown, (x,)).c_source)


def test_any_instruction_of_a_file_may_be_fed_or_fetched(tmp_path: Path) -> None:
    module = hlo.parse(MATMUL)
    program = hloom.aot.compile(module, feeds=["x_y_prod", "z"])
    x = np.array([[1, 2], [3, 4]], np.float32)
    np.testing.assert_array_equal(loaded(program, tmp_path)(x, 10 * x), 11 * x)
    assert [s.name for s in program.arguments] == ["x_y_prod", "z"]


@pytest.mark.parametrize("form", ["dict", "leaf", "npz"])
def test_frozen_values_are_constants(form: str, tmp_path: Path) -> None:
    freeze: Any = {"params": PARAMS}
    if form == "leaf":
        freeze = {"params.w": PARAMS["w"], "params['b']": PARAMS["b"]}
    if form == "npz":
        freeze = tmp_path / "weights.npz"
        np.savez(freeze, **{"params.w": PARAMS["w"], "params.b": PARAMS["b"]})
    program = hloom.aot.compile(net, (PARAMS, X), freeze=freeze)
    assert [s.name for s in program.arguments] == ["x"]
    label, probabilities = loaded(program, tmp_path / "out")(X)
    expected = net(PARAMS, X)
    np.testing.assert_array_equal(label, expected["label"])
    np.testing.assert_allclose(probabilities, expected["probabilities"], rtol=1e-5)


BAD: list[tuple[str, Callable[[], Any], type[Exception], str]] = [
    ("unknown feed", lambda: hloom.aot.compile(net, (PARAMS, X), feeds=["parms.w"]), FeedError,
     r"no feed 'parms.w'; similar: params.w, params.b\n  0: params.b  f32\[5\]"),
    ("feed number", lambda: hloom.aot.compile(net, (PARAMS, X), feeds=[3]), FeedError, "no feed 3: there are 3"),
    ("twice", lambda: hloom.aot.compile(net, (PARAMS, X), feeds=["params", "params.w"]), FeedError, "chosen twice"),
    ("unknown fetch", lambda: hloom.aot.compile(net, (PARAMS, X), fetches=["labels"]), FeedError, "similar: label"),
    ("no fetch", lambda: hloom.aot.compile(net, (PARAMS, X), fetches=[]), FeedError, "no results"),
    ("not fed", lambda: hloom.aot.compile(net, (PARAMS, X), feeds=["x"]), FeedError,
     r"needs .* \(f32\[7,5\]\S*\), which is neither fed nor frozen"),
    ("frozen and fed", lambda: hloom.aot.compile(net, (PARAMS, X), feeds=["x", "params"], freeze={"params": PARAMS}),
     FeedError, "both fed and frozen"),
    ("frozen shape", lambda: hloom.aot.compile(net, (PARAMS, X), freeze={"params.w": np.ones(3)}), FeedError,
     r"params.w has shape \[7, 5\], the value \[3\]"),
    ("frozen type", lambda: hloom.aot.compile(net, (PARAMS, X), freeze={"params.b": np.ones(5, complex)}), FeedError,
     "params.b is f32, the value complex128"),
    ("frozen tree", lambda: hloom.aot.compile(net, (PARAMS, X), freeze={"params": [X]}), FeedError, "means 2 arrays"),
    ("freeze of a list", lambda: hloom.aot.compile(net, (PARAMS, X), freeze=[X]), TypeError, "dict from paths"),
    ("name", lambda: hloom.aot.compile(net, (PARAMS, X), name="a-b"), IdentifierError, "'a-b' is no C identifier"),
    ("keyword", lambda: hloom.aot.compile(net, (PARAMS, X), name="register"), IdentifierError, "no C identifier"),
    ("class", lambda: hloom.aot.compile(net, (PARAMS, X), cpp_class="a::1b"), IdentifierError, "'1b' is no C"),
    ("hostile class", lambda: hloom.aot.compile(net, (PARAMS, X), cpp_class="A { }; int x"), IdentifierError, "no C"),
    ("triple", lambda: hloom.aot.compile(net, (PARAMS, X), target="vax-dec-vms"), TargetError, "no target"),
    ("no triple", lambda: hloom.aot.compile(net, (PARAMS, X), target="; rm"), TargetError, "no target triple"),
    ("cpu", lambda: hloom.aot.compile(net, (PARAMS, X), target="aarch64-linux-gnu", cpu="cortex-a73x"), TargetError,
     "no CPU 'cortex-a73x' .* similar: cortex-a7"),
    ("feature", lambda: hloom.aot.compile(net, (PARAMS, X), target="aarch64-linux-gnu", features="+soe"), TargetError,
     "no feature 'soe'"),
    ("big endian", lambda: hloom.aot.compile(net, (PARAMS, X), target="s390x-linux-gnu"), TargetError, "most signif"),
    ("calls of Python", lambda: hloom.aot.compile(lambda x: hloom.pure_callback(np.sin, x, x), (X,)), UnsupportedError,
     "custom-call .*callback.* calls a function of Python, which does not leave"),
    ("callback", lambda: hloom.aot.compile(lambda x: hloom.debug.print("{}", x) or x, (X,)), UnsupportedError,
     "acts outside of the program"),
    ("source", lambda: hloom.aot.compile(3), TypeError, "takes a function, a jit"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "call", "error", "said"), BAD, ids=[b[0] for b in BAD])
def test_what_is_wrong_is_said(what: str, call: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        call()


def test_unwritable_output_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = hloom.aot.compile(lambda x: x + 1, (X,))
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):  # NotADirectoryError or FileExistsError
        program.write(tmp_path / "file" / "below")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", _full)
        with pytest.raises(OSError, match="no space"):
            program.write(tmp_path / "folder" / "below")
    assert not (tmp_path / "folder").exists()


def test_files_that_were_there_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = hloom.aot.compile(lambda x: x + 1, (X,))
    (tmp_path / "computation.h").write_text("old")
    (tmp_path / "computation.json").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        program.write(tmp_path)
    (tmp_path / "computation.json").rmdir()
    real, calls = os.replace, []

    def fails_late(source: Any, target: Any) -> None:
        calls.append(target)
        if len(calls) == 5:
            raise OSError("the disk is gone")
        real(source, target)

    monkeypatch.setattr(os, "replace", fails_late)
    with pytest.raises(OSError, match="the disk is gone"):
        program.write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["computation.h"]
    assert (tmp_path / "computation.h").read_text() == "old"


def _full(self: Path, data: bytes) -> int:
    raise OSError("no space left")


def test_a_loaded_program_checks_its_arguments(tmp_path: Path) -> None:
    run = loaded(hloom.aot.compile(lambda x: x + 1, (X,)), tmp_path)
    with pytest.raises(ExecutionError, match="takes 1 arrays, got 2"):
        run(X, X)
    with pytest.raises(ExecutionError, match=r"x, must be float32\[3, 7\], got float64\[3, 7\]"):
        run(X.astype(np.float64))
    np.testing.assert_array_equal(run(X[::-1]), X[::-1] + 1)


def test_several_threads_run_one_program(tmp_path: Path) -> None:
    run = loaded(hloom.aot.compile(rows, (FUNCTIONS[2][2][0],)), tmp_path)
    x = FUNCTIONS[2][2][0]
    expected, found = run(x), []
    threads = [threading.Thread(target=lambda: found.extend(run(x) for _ in range(20))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(np.array_equal(f, expected) for f in found)


TARGETS = [
    ("x86_64-linux-gnu", "", b"\x7fELF", 62), ("x86_64-linux-gnu", "x86-64-v4", b"\x7fELF", 62),
    ("aarch64-linux-gnu", "cortex-a72", b"\x7fELF", 183), ("riscv64-linux-gnu", "", b"\x7fELF", 243),
    ("armv7-linux-gnueabihf", "", b"\x7fELF", 40), ("wasm32-unknown-unknown", "", b"\0asm", None),
    ("thumbv7em-none-eabi", "cortex-m4", b"\x7fELF", 40),
]  # fmt: skip


@pytest.mark.parametrize(("triple", "cpu", "magic", "machine"), TARGETS)
def test_object_files_are_for_their_target(triple: str, cpu: str, magic: bytes, machine: int | None) -> None:
    code = hloom.aot.compile(loop, (np.ones(3, np.float32),), target=triple, cpu=cpu).object_code
    assert code.startswith(magic)
    if machine is not None:
        assert int.from_bytes(code[18:20], "little") == machine


HOSTILE = [
    'a*/ } #error "', "x\n#include </etc/passwd>\n", "??/\n??=error", "\\", "/* //", "int", "\u202e\u00e9\u6f22",
    "%s%n", "{{x}}",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_a_file_do_not_reach_code(name: str) -> None:
    """HLO text takes almost any name of a parameter from a program that builds it. With a tame one of the same length,
    all files but the description are the same."""
    body = "  a = f32[3] parameter(0)\n  r = f32[3] tanh(a)\n  ROOT t = (f32[3]) tuple(r)\n"
    text = f"HloModule m\nENTRY e {{\n{body}}}\n"
    written = []
    for called in (name, re.sub(r"[^A-Za-z0-9_.]", "_", name)):
        module = hlo.parse(text)
        for instruction in module.entry.instructions:
            object.__setattr__(instruction, "name", called)
        object.__setattr__(module, "name", called)
        program = hloom.aot.compile(module)
        assert program.arguments[0].name == called
        files = {file: content for file, content in program.files().items() if not file.endswith((".json", ".o"))}
        written.append(files)
        assert json.loads(program.files()["computation.json"])["arguments"][0]["name"] == called
    assert written[0] == written[1]


SPECS = [
    ("a.toml", 'name = "n"\nsource = "g.hlo"\nfeeds = ["x", 1]\n', ""),
    ("b.toml", "name = 3\n", "name must be a str"),
    ("c.toml", "nam = 3\n", "no such key: 'nam'; there are source, name"),
    ("d.toml", "name = \n", "Invalid value"),
    ("e.toml", "feeds = [1.5]\n", "names and numbers"),
    ("f.pbtxt", PBTXT, ""),
    ("g.pbtxt", 'feed { id { nodename: "x" } }', "g.pbtxt:1: an id has node_name"),
    ("h.pbtxt", 'feed {\n id { node_name: "x" }\n', r"h.pbtxt:3: expected a field or '}', found 'the end'"),
    ("i.pbtxt", 'fetch { shape { dim { size: 1 } } }', "a fetch has id"),
    ("j.pbtxt", 'feed { id { node_name: "x" } shape { dim { size: -1 } } }', "a size must be known, not -1"),
    ("k.pbtxt", "feed { %", "'%' is not expected"),
    ("l.pbtxt", "variable { }", "a Config has messages feed and fetch"),
]


@pytest.mark.parametrize(("file", "text", "said"), SPECS, ids=[s[0] for s in SPECS])
def test_specifications(file: str, text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / file
    path.write_text(text)
    if said:
        with pytest.raises(SpecError, match=said):
            read_spec(str(path))
        return
    spec = read_spec(str(path))
    if file.endswith("pbtxt"):
        assert spec.feeds == ["x_hold", "y_hold"]
        assert spec.fetches == ["x_y_prod"]
        assert spec.shapes == {"x_hold": [2, 3], "y_hold": [3, 2]}
    else:
        assert (spec.name, spec.source, spec.feeds) == ("n", "g.hlo", ["x", 1])


def test_the_command_compiles_a_function(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(
        "import numpy as np\ndef f():\n    return (lambda x, w: x @ w), (np.ones((2, 3)), np.ones((3, 2)))\n"
    )
    np.savez(tmp_path / "w.npz", w=np.ones((3, 2), np.float32))
    command = [sys.executable, "-m", "hloom", "aot", "work.py:f", "--freeze", "w.npz", "--name", "p", "-o", "out"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stderr.splitlines() == ["arg0  x: f32[2,3]", "result0  result: f32[2,2]"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "p.h", "p_c.h", "p.c", "p.o", "p.json", "p_test.cc", "p_benchmark.cc", "Makefile", "CMakeLists.txt",
    }  # fmt: skip
    wrong = subprocess.run([*command[:-3], "a b"], cwd=tmp_path, capture_output=True, text=True)
    assert wrong.returncode == 1
    assert "no C identifier" in wrong.stderr


DYNAMIC = "HloModule d\nENTRY main {\n  x = f32[<=5] parameter(0)\n  ROOT r = f32[<=5] add(x, x)\n}\n"
PYTHON = (
    "HloModule d\nENTRY main {\n  x = f32[5] parameter(0)\n"
    '  ROOT r = f32[5] custom-call(x), custom_call_target="xla_ffi_python_cpu_callback"\n}\n'
)
WRONG_COMMANDS: list[tuple[list[str], int, str]] = [
    (["m.hlo", "--feed", "x_holt"], 1, "no feed 'x_holt'; similar: x_hold, y_hold\n  0: x_hold"),
    (["m.hlo", "--fetch", "x_y_pro"], 1, "no fetch 'x_y_pro'; similar: x_y_prod\n  0: sum  f32[2,2]\n  or an"),
    (["m.hlo", "--feed", "x_hold"], 1, "a fetch needs y_hold (f32[3,2]), which is neither fed nor frozen"),
    (["dynamic.hlo"], 1, "whose size is known only when the program runs"),
    (["python.hlo"], 1, "custom-call r: 'xla_ffi_python_cpu_callback': it calls a Python function"),
    (["none.hlo"], 2, "cannot read none.hlo"),
    (["none.toml"], 1, "cannot read none.toml: No such file"),
    (["m.hlo", "--config", "none.pbtxt"], 1, "cannot read none.pbtxt"),
    (["m.hlo", "--target", "vax-dec-vms"], 1, "no target for 'vax-dec-vms'"),
    (["m.hlo", "--target", "aarch64-linux-gnu", "--cpu", "cortex-a7x"], 1, "no CPU 'cortex-a7x' of aarch64"),
    (["m.hlo", "--cpp-class", "a::1b"], 1, "'1b' is no C++ identifier"),
    (["m.hlo", "--name", "a b"], 1, "'a b' is no C identifier"),
    (["m.hlo", "-o", "file"], 2, "cannot write to file: File exists"),
    (["m.hlo", "-o", "file/below"], 2, "cannot write to file/below: Not a directory"),
    (["m.hlo", "-o", "taken"], 2, "cannot write to taken: is a folder (taken/m.h)"),
    (["m.hlo", "--freeze", "none.npz"], 1, "freeze: there is no file none.npz"),
    (["m.hlo", "--freeze", "text.npz"], 1, "freeze: text.npz holds no arrays that NumPy can load"),
    (["m.hlo", "--freeze", "file"], 1, "neither a .npz nor a .safetensors"),
]


@pytest.mark.parametrize(("arguments", "code", "said"), WRONG_COMMANDS, ids=[" ".join(w[0]) for w in WRONG_COMMANDS])
def test_wrong_commands_say_what_is_wrong_and_write_nothing(
    arguments: list[str], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    (tmp_path / "m.hlo").write_text(MATMUL)
    (tmp_path / "dynamic.hlo").write_text(DYNAMIC)
    (tmp_path / "python.hlo").write_text(PYTHON)
    (tmp_path / "text.npz").write_text("no archive")
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / "m.h").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    assert command_line(["aot", *arguments, *([] if "-o" in arguments else ["-o", "out"])]) == code
    assert said in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_loading_a_program_imports_no_compiler(tmp_path: Path) -> None:
    hloom.aot.compile(lambda x: x + 1, (X,), name="p").write(tmp_path)
    text = "import sys, hloom.aot; hloom.aot.load(sys.argv[1]); print(*sys.modules)"
    command = [sys.executable, "-c", text, str(tmp_path / "p.json")]
    modules = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert "hloom.aot.loading" in modules
    needless = ("numba", "scipy", "ml_dtypes", "optree", "hloom.hlo.ir", "hloom.tracer.core", "hloom.aot.compiling")
    assert modules.isdisjoint(needless)
