"""`hloom run`, `hloom opt` and `hloom check`: what they print, what they store, and how they end."""

from __future__ import annotations

import io
import pickle
import re
import shlex
import struct
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo import ElementType, HloParseError, parse, stablehlo, verify
from hloom.hlo.comparing import compare
from hloom.hlo.evaluator.table import EVALUATE
from hloom.hlo.opcode import Opcode

from hloom import ShapeDtypeStruct, __version__, export, jit, run_hlo
from hloom.command_line import main
from hloom.command_line.options import parse_options
from support.hlo_texts import RECORDED

AXPY = """HloModule axpy

ENTRY e {
  a = f32[] parameter(0)
  x = f32[3] parameter(1)
  y = f32[3] parameter(2)
  b = f32[3] broadcast(a), dimensions={}
  m = f32[3] multiply(b, x)
  s = f32[3] add(m, y)
  c = pred[3] compare(m, y), direction=LT
  ROOT r = (f32[3], pred[3]) tuple(s, c)
}
"""


@pytest.fixture
def axpy(tmp_path: Path) -> str:
    path = tmp_path / "axpy.hlo"
    path.write_text(AXPY)
    return str(path)


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    """a as .npy, x and y in one .npz."""
    np.save(tmp_path / "a.npy", np.float32(2))
    np.savez(tmp_path / "xy.npz", x=np.float32([1, 2, 3]), y=np.float32([10, 0, 30]))
    return [str(tmp_path / "a.npy"), str(tmp_path / "xy.npz")]


def hloom(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of one command, run in this process."""
    try:
        code = main(arguments)
    except SystemExit as exit:  # argparse
        assert isinstance(exit.code, int)
        code = exit.code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


# run


@pytest.mark.parametrize("backend", ["numba", "evaluator"])
def test_run_prints_its_results(capsys: pytest.CaptureFixture[str], axpy: str, inputs: list[str], backend: str) -> None:
    code, out, err = hloom(capsys, "run", axpy, "--backend", backend, "--input", *inputs)
    assert (code, err) == (0, "")
    assert out == "result 0: f32[3]\n[12.  4. 36.]\nresult 1: pred[3]\n[ True False  True]\n"


@pytest.mark.parametrize("output", ["out", "folder/", "results.npz"])
def test_run_stores_its_results(
    capsys: pytest.CaptureFixture[str], axpy: str, inputs: list[str], tmp_path: Path, output: str
) -> None:
    code, out, err = hloom(capsys, "run", axpy, "--input", *inputs, "--output", f"{tmp_path}/{output}")
    assert (code, out, err) == (0, "", "")
    if output.endswith(".npz"):
        with np.load(tmp_path / output) as stored:
            results = [stored["result0"], stored["result1"]]
    else:
        stem = tmp_path / ("folder/result" if output == "folder/" else output)
        results = [np.load(f"{stem}{number}.npy") for number in range(2)]
    np.testing.assert_array_equal(results[0], np.float32([12, 4, 36]))
    np.testing.assert_array_equal(results[1], [True, False, True])


def test_run_prints_and_stores_on_request(
    capsys: pytest.CaptureFixture[str], axpy: str, inputs: list[str], tmp_path: Path
) -> None:
    code, out, _ = hloom(capsys, "run", axpy, "--input", *inputs, "--output", str(tmp_path / "out"), "--print")
    assert code == 0 and out.startswith("result 0: f32[3]\n") and (tmp_path / "out0.npy").exists()


def test_random_arrays_depend_on_the_seed_alone(capsys: pytest.CaptureFixture[str], axpy: str) -> None:
    first, again, other = (
        hloom(capsys, "run", axpy, "--random", "--seed", seed, "--backend", "evaluator")[1] for seed in ("1", "1", "2")
    )
    assert first == again != other


def test_repeat_says_how_long_it_took_and_not_on_stdout(capsys: pytest.CaptureFixture[str], axpy: str) -> None:
    code, out, err = hloom(capsys, "run", axpy, "--random", "--repeat", "3")
    assert code == 0 and out.count("result") == 2
    assert re.fullmatch(r"compile and first run .* ms; then 3 runs: fastest .* ms, median .* ms\n", err)


def test_types_that_numpy_does_not_know_survive_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """NumPy stores bf16 as bytes; what one command stores the next one reads."""
    (tmp_path / "m.hlo").write_text("HloModule m\nENTRY e { x = bf16[2] parameter(0)\n ROOT y = negate(x) }")
    np.save(tmp_path / "x.npy", np.array([1.5, -2], ml_dtypes.bfloat16))
    for given, stored in (("x", "y"), ("y0", "z")):
        arguments = ["--input", f"{tmp_path}/{given}.npy", "--output", f"{tmp_path}/{stored}"]
        assert hloom(capsys, "run", f"{tmp_path}/m.hlo", *arguments)[0] == 0
    back = np.load(tmp_path / "z0.npy").view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(back, np.array([1.5, -2], ml_dtypes.bfloat16))


def test_a_module_on_stdin(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"HloModule m\nENTRY e { ROOT x = s32[2] constant({1, 2}) }"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert hloom(capsys, "run", "-") == (0, "result 0: s32[2]\n[1 2]\n", "")


# Sizes that no memory has

TOO_LARGE = {  # the type of an argument and of the result
    "f32[9223372036854775807,0,9223372036854775807]": None,  # NumPy refuses such an array without elements
    "f32[1000000000000000]": ("3:2", "x"),
    "f32[2305843009213693951]": ("3:2", "x"),  # as wider numbers they are more than 2**63 bytes
    "pred[9223372036854775807]": ("3:2", "x"),
    "s4[9223372036854775807]": ("3:2", "x"),
}


@pytest.mark.parametrize(
    "command", ["run --random", "run --random --backend evaluator", "check --compare", "bisect", "opt"]
)
@pytest.mark.parametrize("shape", TOO_LARGE)
def test_sizes_that_no_memory_has(capsys: pytest.CaptureFixture[str], tmp_path: Path, shape: str, command: str) -> None:
    path = tmp_path / "large.hlo"
    path.write_text(f"HloModule m\nENTRY e {{\n x = {shape} parameter(0)\n ROOT r = {shape} copy(x) }}\n")
    name, *options = command.split()
    code, out, err = hloom(capsys, name, str(path), *options)
    place = TOO_LARGE[shape]
    if place is None:
        assert code == 1 and err.startswith(f"{path}:3:6: f32[") and "does not fit in 64-bit memory [shape_c2]" in err
    elif name == "opt":
        assert (code, err) == (0, "") and shape in out
    else:
        assert code == 1 and err.startswith(f"{path}:{place[0]}: there is not enough memory: the largest array, x, is")


@pytest.mark.parametrize("backend", ["numba", "evaluator"])
def test_a_value_that_no_memory_holds(capsys: pytest.CaptureFixture[str], tmp_path: Path, backend: str) -> None:
    path = tmp_path / "large.hlo"
    path.write_text(
        "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  ROOT %wide = f32[2305843009213693951] broadcast(x), "
        "dimensions={}\n}\n"
    )
    code, _, err = hloom(capsys, "run", str(path), "--random", "--backend", backend, "--output", str(tmp_path / "out"))
    assert code == 1 and err.startswith(f"{path}:4:8: there is not enough memory: the largest array, wide, is f32[")


# opt


def test_opt_prints_a_module(capsys: pytest.CaptureFixture[str], axpy: str) -> None:
    code, out, err = hloom(capsys, "opt", axpy)
    assert (code, err) == (0, "")
    module = parse(out)
    verify(module)
    assert Opcode.FUSION in {i.opcode for i in module.entry.instructions}


def test_opt_runs_the_passes_that_it_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = "HloModule m\nENTRY e { x = f32[2] parameter(0)\n y = negate(x)\n z = negate(x)\n ROOT r = add(y, z) }"
    (tmp_path / "m.hlo").write_text(text)

    def negations(*arguments: str) -> int:
        code, out, err = hloom(capsys, "opt", f"{tmp_path}/m.hlo", *arguments)
        assert (code, err) == (0, "")
        return out.count("negate(")

    assert negations("--passes", "dce") == 2
    assert negations("--passes", "cse") == 1, "both users have one operand, and nobody uses the other"
    assert negations("--until", "layout-erasure") == 2
    assert negations("--until", "cse") == 1
    assert negations("--until", "cse", "--disable", "cse,algebraic-simplifier") == 2


def test_opt_heeds_the_environment(
    capsys: pytest.CaptureFixture[str], axpy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HLOOM_DISABLE_PASSES", "fusion")
    assert "fusion(" not in hloom(capsys, "opt", axpy)[1]
    monkeypatch.setenv("HLOOM_DISABLE_PASSES", "fly")
    code, _, err = hloom(capsys, "opt", axpy)
    assert code == 2 and "no pass named fly" in err


def test_opt_lists_its_passes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = hloom(capsys, "opt", "--list-passes")
    assert (code, err) == (0, "")
    names = out.split()
    assert names[0] == "spmd-partitioner" and "fusion" in names and len(names) == len(set(names))


def test_opt_writes_files_and_graphs(capsys: pytest.CaptureFixture[str], axpy: str, tmp_path: Path) -> None:
    out = tmp_path / "out.hlo"
    assert hloom(capsys, "opt", axpy, "-o", str(out)) == (0, "", "")
    verify(parse(out.read_text()))
    code, graph, _ = hloom(capsys, "opt", axpy, "--dot", "--passes", "dce")
    assert code == 0 and graph.startswith("digraph")


def test_opt_says_what_passes_did_on_stderr(capsys: pytest.CaptureFixture[str], axpy: str) -> None:
    code, out, err = hloom(capsys, "opt", axpy, "--stats", "--until", "dce")
    assert code == 0 and out.startswith("HloModule")
    found = ["pass", "spmd-partitioner", "known-composites", "call-inliner", "layout-erasure", "dce", "all"]
    assert [line.split()[0] for line in err.splitlines()] == found


def test_opt_without_the_lines_of_the_source(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "model.hlo"
    line = 'ROOT x = f32[] parameter(0), metadata={op_name="x" source_file="a.py" source_line=3}'
    file.write_text(f"HloModule m\n\nENTRY e {{\n  {line}\n}}\n")
    assert 'source_file="a.py"' in hloom(capsys, "opt", str(file))[1]
    code, out, _ = hloom(capsys, "opt", str(file), "--no-metadata")
    assert code == 0 and "ROOT %x = f32[] parameter(0)\n" in out


@pytest.mark.parametrize("command", ["run", "opt", "check", "bisect", "layout"])
def test_every_command_has_the_same_kind_of_help(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    text = capsys.readouterr().out
    assert caught.value.code == 0 and '"-" is stdin.' in text and "exit codes:\n  0  all is well" in text
    examples = re.findall(r"^  (hloom .*?)(?:  .*)?$", text[text.index("examples:") :], re.MULTILINE)
    assert examples
    for example in examples:
        assert parse_options(shlex.split(example)[1:]).command == command
    assert max(map(len, text.splitlines())) <= 120


# check


def test_check_says_that_all_is_well(capsys: pytest.CaptureFixture[str], axpy: str) -> None:
    code, out, err = hloom(capsys, "check", axpy)
    assert (code, err) == (0, "")
    assert out == f"{axpy}: module axpy, 1 computations, 8 instructions: ok\n"


def test_check_compares_compiled_code_with_the_reference(
    capsys: pytest.CaptureFixture[str], axpy: str, inputs: list[str]
) -> None:
    softmax = str(next(p for p in RECORDED if p.stem == "softmax"))
    code, out, err = hloom(capsys, "check", axpy, softmax, "--compare")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 2 + 2 + 1 and out.count(": ok") == 5
    code, out, _ = hloom(capsys, "check", axpy, "--compare", "--input", *inputs)
    assert code == 0 and "result 0: f32[3]: ok, equal" in out


def test_check_finds_results_that_differ(
    capsys: pytest.CaptureFixture[str], axpy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a reference that adds wrongly."""
    assert Opcode.ADD in EVALUATE
    monkeypatch.setitem(EVALUATE._rules, Opcode.ADD, lambda shape, attributes, x, y: x + y + np.float32(0.1))
    code, out, _ = hloom(capsys, "check", axpy, "--compare")
    assert code == 1 and re.search(r"result 0: f32\[3\]: DIFFERS, at most \d+ ulps apart, 0\.\d+ of the largest", out)
    assert "result 1: pred[3]: ok, equal" in out
    assert hloom(capsys, "check", axpy, "--compare", "--tolerance", "0.9")[0] == 0


def test_check_looks_at_all_files(capsys: pytest.CaptureFixture[str], axpy: str, tmp_path: Path) -> None:
    (tmp_path / "bad.hlo").write_text("HloModule m\nENTRY e { ROOT x = f32[2] negat(y) }")
    code, out, err = hloom(capsys, "check", f"{tmp_path}/bad.hlo", axpy)
    assert code == 1 and out.startswith(f"{axpy}: ")
    assert err.startswith(f"{tmp_path}/bad.hlo:2:27: 'negat' is no HLO op: expected an opcode, perhaps 'negate'\n")


@pytest.mark.parametrize(
    ("actual", "expected", "fine", "text"),
    [
        ([1.0, 2.0], [1.0, 2.0], True, "equal"),
        ([0.0], [-0.0], True, "equal"),
        ([np.nan, np.inf], [np.nan, np.inf], True, "equal"),
        ([1.0], [np.nextafter(np.float32(1), np.float32(2))], True, "at most 1 ulps apart, 1.2e-07"),
        ([-1e-45], [1e-45], True, "at most 2 ulps apart"),
        ([1.0, 100.0], [1.001, 100.0], True, "at most 8389 ulps apart, 1e-05 of the largest number"),
        ([1.0, 100.0], [1.1, 100.0], False, "at most 838861 ulps apart, 0.001 of the largest number"),
        ([np.nan], [1.0], False, "1 of 1 numbers are NaN or infinite in one only"),
        ([np.inf], [-np.inf], False, "1 of 1 numbers are NaN or infinite in one only"),
        ([], [], True, "no elements"),
        ([0.0], [1e-30], False, "ulps apart"),
    ],
)
def test_how_far_arrays_are_apart(actual: list[float], expected: list[float], fine: bool, text: str) -> None:
    found = compare(np.float32(actual), np.float32(expected), ElementType.F32)
    assert found.is_fine is fine and text in found.text


def test_ulps_of_doubles_of_opposite_sign() -> None:
    largest = np.finfo(np.float64).max
    found = compare(np.array([largest]), np.array([-largest]), ElementType.F64)
    assert not found.is_fine and f"at most {2 * 0x7FEFFFFFFFFFFFFF} ulps apart" in found.text


# What goes wrong


def test_bad_hlo_is_told_with_its_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.hlo"
    bad.write_text("HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT y = f32[3] negate(x) }")
    for command in ("run", "opt", "check"):
        code, out, err = hloom(capsys, command, str(bad))
        assert (code, out) == (1, "")
        assert err.startswith(f"{bad}:3:18: negate of (f32[2]) gives f32[2], not f32[3] [negate_result]\n")


def test_what_cannot_be_run_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "two.hlo"
    path.write_text("HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT y = f32[4] all-gather(x), dimensions={0} }")
    code, out, err = hloom(capsys, "run", str(path), "--random")
    assert (code, out) == (1, "") and err.startswith("hloom: all-gather y needs several replicas, there is one")


def test_bytes_that_are_no_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "odd.hlo"
    path.write_bytes(b"HloModule m\n\xff\xfe{")
    code, _, err = hloom(capsys, "check", str(path))
    assert code == 1 and err.startswith(f"{path}:2:1: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["fly"], "invalid choice: 'fly'"),
        (["run"], "FILE"),
        (["run", "{missing}"], "cannot read {missing}: No such file"),
        (["run", "{folder}"], "cannot read {folder}: Is a directory"),
        (["run", "{axpy}"], "takes 3 arrays (f32[], f32[3], f32[3]): give them with --input, or say --random"),
        (["run", "{axpy}", "--random", "--input", "x"], "not allowed with argument"),
        (["run", "{axpy}", "--input", "{missing}"], "cannot read {missing}: "),
        (["run", "{axpy}", "--input", "{axpy}"], "{axpy} holds no arrays that NumPy can load"),
        (["run", "{axpy}", "--input", "{scalar}"], "takes 3 arrays (f32[], f32[3], f32[3]), but --input has 1"),
        (
            ["run", "{axpy}", "--input", "{scalar}", "{scalar}", "{scalar}"],
            "input 1 must be f32[3], an array float32[3]",
        ),
        (["run", "{axpy}", "--random", "--backend", "gpu"], "invalid choice: 'gpu'"),
        (["run", "{axpy}", "--random", "--seed", "-1"], "not a whole number of at least 0"),
        (["run", "{axpy}", "--random", "--repeat", "0"], "not a whole number of at least 1"),
        (["run", "{axpy}", "--random", "--output", "{scalar}/x"], "cannot write {scalar}/x"),
        (["opt"], "opt needs a FILE"),
        (["opt", "{axpy}", "--passes", "cse,fly"], "no pass named fly; known: spmd-partitioner, "),
        (["opt", "{axpy}", "--until", "fly"], "no pass named fly"),
        (["opt", "{axpy}", "--disable", "fly"], "no pass named fly"),
        (["opt", "{axpy}", "--passes", "cse", "--until", "cse"], "not allowed with argument"),
        (["opt", "{axpy}", "-o", "{folder}"], "cannot write {folder}"),
        (["check", "{axpy}", "--tolerance", "1"], "--input, --tolerance, --target and --schedule are for --compare"),
        (["check", "{axpy}", "--target", "cpu"], "are for --compare"),
        (["check", "{axpy}", "--compare", "--target", "abacus"], "no target 'abacus'; there are 'cpu'"),
        (["run", "{axpy}", "--random", "--target", "abacus"], "no target 'abacus'"),
        (["opt", "{axpy}", "--target", "abacus"], "no target 'abacus'"),
        (["check", "{axpy}", "--compare", "--tolerance", "nan"], "not a number of at least 0"),
    ],
)
def test_a_command_line_that_is_wrong(
    capsys: pytest.CaptureFixture[str], axpy: str, tmp_path: Path, arguments: list[str], message: str
) -> None:
    np.save(tmp_path / "scalar.npy", np.float32(1))
    names = {
        "missing": f"{tmp_path}/missing", "folder": str(tmp_path), "axpy": axpy, "scalar": f"{tmp_path}/scalar.npy",
    }  # fmt: skip
    code, out, err = hloom(capsys, *[argument.format_map(names) for argument in arguments])
    assert (code, out) == (2, "")
    assert message.format_map(names) in err


# Damaged files


def npy(header: str, data: bytes = bytes(16)) -> bytes:
    """A file of NumPy's format."""
    line = header.encode() + b"\n"
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(line)) + line + data


def described(descr: str = "'<f4'", order: str = "False", shape: str = "(4,)") -> str:
    return f"{{'descr':{descr},'fortran_order':{order},'shape':{shape}}}"


def npz(change: Callable[[bytearray], object], method: int = zipfile.ZIP_STORED) -> bytes:
    """An archive, changed."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", method) as archive:
        archive.writestr("x.npy", npy(described()))
    data = bytearray(memory.getvalue())
    change(data)
    return bytes(data)


def put(at: bytes, offset: int, value: int) -> Callable[[bytearray], object]:
    """Another byte so far behind some bytes."""
    return lambda data: data.__setitem__(data.index(at) + offset, value)


ARRAY_FILES = {
    "empty": b"",
    "parentheses": npy("(" * 9000),
    "lists": npy("[" * 9000),
    "a tebibyte": npy(described(shape="(274877906944,)")),
    "a product beyond 64 bits": npy(described(shape="(4611686018427387904, 8)")),
    "a size beyond 64 bits": npy(described(shape="(99999999999999999999,)")),
    "a size of 5,000 digits": npy(described(shape="(" + "9" * 5000 + ",)")),
    "too little data": npy(described(shape="(400,)")),
    "no dictionary": npy("3"),
    "no text": npy("'\x00"),
    "other keys": npy("{'a': 1}"),
    "an unknown type": npy(described("'<q9'")),
    "an odd type": npy(described("[('a', '<f4', 3, 4)]")),
    "nested types": npy(described("[('a'," * 500 + "'<f4'" + ")]" * 500)),
    "objects": npy(described("'|O'")),
    "another version": b"\x93NUMPY\x09\x00" + bytes(100),
    "a long header": b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
    "an archive of half": npz(lambda data: data.__delitem__(slice(60, None))),
    "an archive with another sum": npz(lambda data: data.__setitem__(105, data[105] ^ 1)),
    "an encrypted archive": npz(put(b"PK\x01\x02", 8, 1)),
    "an unknown compression": npz(put(b"PK\x01\x02", 10, 99)),
    "compressed nonsense": npz(lambda data: data.__setitem__(slice(35, 45), b"\xff" * 10), zipfile.ZIP_DEFLATED),
    "a pickle": pickle.dumps([1, 2]),
}


@pytest.mark.parametrize("name", ARRAY_FILES)
def test_damaged_arrays(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    (tmp_path / "m.hlo").write_text("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] sine(x)\n}\n")
    path = tmp_path / "x.npz"
    path.write_bytes(ARRAY_FILES[name])
    code, out, err = hloom(capsys, "run", f"{tmp_path}/m.hlo", "--input", str(path))
    assert (code, out) == (2, "") and f"{path} holds no arrays that NumPy can load: " in err and err.count("\n") == 1
    code, out, err = hloom(capsys, "aot", f"{tmp_path}/m.hlo", "--freeze", str(path), "-o", str(tmp_path))
    assert (code, out) == (1, "") and str(path) in err and err.count("\n") == 1


LONG = "9" * 5000
CONFIGURATIONS = {
    "digits.pbtxt": (
        '\nfeed { id { node_name: "x" } shape { dim { size: ' + LONG + " } } }",
        ":2: a number of 5000 digits",
    ),
    "output.pbtxt": ('feed { id { node_name: "x" output_index: -9223372036854775809 } }', ":1: a number of 20 digits"),
    "deep.pbtxt": ("feed {" * 5000, ":1: messages are nested more than 100 deep"),
    "open.pbtxt": ("feed { id {", ":1: expected a field or '}', found 'the end'"),
    "digits.toml": (f"feeds = [{LONG}]", ": Exceeds the limit"),
    "deep.toml": ("feeds = " + "[" * 5000, ": maximum recursion depth exceeded"),
    "shape.toml": ("shapes = {x = 5}", ": the shape of x must be a list of numbers, not 5"),
    "size.toml": ("shapes = {x = [4.5]}", ": the shape of x must be a list of numbers, not [4.5]"),
    "null.toml": ('source = "\\u0000"', "embedded null byte"),
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_damaged_configurations(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    (tmp_path / "m.hlo").write_text("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] sine(x)\n}\n")
    text, message = CONFIGURATIONS[name]
    (tmp_path / name).write_text(text)
    subject = [f"{tmp_path}/m.hlo", "--config"] if name.endswith(".pbtxt") else []
    code, out, err = hloom(capsys, "aot", *subject, f"{tmp_path}/{name}", "-o", str(tmp_path))
    assert code in (1, 2) and out == ""
    assert (f"{name}{message}" if message.startswith(":") else message) in err and err.count("\n") == 1


# Modules that ask for more than there is

_ONE = "ENTRY e {\n  ROOT c = f32[] constant(1)\n}"
_TOKEN = "ENTRY e {\n  t = token[] after-all()\n  "
_RECV = "r = (f32[4], u32[], token[]) recv(t), channel_id=7\n  ROOT d = (f32[4], token[]) recv-done(r), channel_id=7"
WANTING = {
    "replicas": (f"HloModule m, replica_count=1000000\n{_ONE}", "1:28", "1,024 devices"),
    "partitions": (f"HloModule m,\n  num_partitions=2147483647\n{_ONE}", "2:18", "1,024 devices"),
    "infeed": (f"HloModule m\n{_TOKEN}ROOT i = (f32[4], token[]) infeed(t)\n}}", "4:8", "infeed"),
    "infeed of a function": (
        "HloModule m\nf {\n  t = token[] parameter(0)\n  ROOT i = (f32[4], token[]) infeed(t)\n}\nENTRY e {\n"
        "  t = token[] after-all()\n  ROOT c = (f32[4], token[]) call(t), to_apply=f\n}", "4:8", "infeed",
    ),
    "recv": (f"HloModule m\n{_TOKEN}{_RECV}\n}}", "5:8", "channel 7"),
    "recv on two devices": (
        f"HloModule m, replica_count=2\n{_TOKEN}{_RECV}\n}}", "5:8", "channel 7",
    ),
    "recv before its send": (
        f"HloModule m\n{_TOKEN}x = f32[4] constant({{1,2,3,4}})\n"
        "  r = (f32[4], u32[], token[]) recv(t), channel_id=7\n  d = (f32[4], token[]) recv-done(r), channel_id=7\n"
        "  u = token[] get-tuple-element(d), index=1\n  s = (f32[4], u32[], token[]) send(x, u), channel_id=7\n"
        "  ROOT e = token[] send-done(s), channel_id=7\n}", "6:3", "channel 7",
    ),
}  # fmt: skip


@pytest.mark.parametrize("command", ["run", "run --backend evaluator", "check --compare"])
@pytest.mark.parametrize("name", WANTING)
def test_what_nobody_gives(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, command: str
) -> None:
    text, place, what = WANTING[name]
    path = tmp_path / "m.hlo"
    path.write_text(text)
    monkeypatch.setattr(import_module("hloom.hlo.collectives.world"), "_local_devices", 1)
    subcommand, *options = command.split()
    code, out, err = hloom(capsys, subcommand, str(path), *options)
    assert code == 1 and err.startswith(f"{path}:{place}: ") and what in err
    assert (path.name in out) is (subcommand == "check")


def test_pickles_are_not_loaded(capsys: pytest.CaptureFixture[str], axpy: str, tmp_path: Path) -> None:
    np.save(tmp_path / "evil.npy", np.array([print], dtype=object), allow_pickle=True)
    code, _, err = hloom(capsys, "run", axpy, "--input", f"{tmp_path}/evil.npy")
    assert code == 2 and "holds no arrays that NumPy can load" in err


def test_help_reads_well(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = hloom(capsys, "--help")
    assert (code, err) == (0, "")
    for word in ("run ", "opt ", "check ", "exit codes:", "examples:"):
        assert word in out
    for command in ("run", "opt", "check"):
        code, out, err = hloom(capsys, command, "--help")
        assert (code, err) == (0, "") and out.startswith(f"usage: hloom {command} ") and "FILE" in out


# As a process


def process(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hloom", *arguments], input=stdin, capture_output=True, text=True, timeout=120
    )


def test_as_a_process() -> None:
    ran = process("run", "-", "--backend", "evaluator", stdin="HloModule m\nENTRY e { ROOT x = s32[] constant(7) }")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "result 0: s32[]\n7\n", "")
    ran = process("check", "-", stdin="HloModule m\nENTRY e {")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("<stdin>:2:10: expected an instruction or '}', found the end of the text")
    assert process().returncode == 2


def test_the_console_script_is_this(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"]["hloom"].partition(":")
    assert getattr(import_module(module), function) is main


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"hloom {__version__}\n"


def test_help_needs_no_numpy() -> None:
    code = "import sys\nfrom hloom.command_line import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "print(*[m for m in ('numpy', 'numba', 'hloom.hlo.ir') if m in sys.modules], file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.stderr.strip() == "" and "exit codes" in ran.stdout


STABLEHLO = """module @double {
  func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.add %x, %x : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
"""


@pytest.mark.parametrize("kind", ["text", "text without a suffix", "bytecode", "exported"])
def test_files_of_stablehlo(capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str) -> None:
    path = tmp_path / ("double.mlir" if kind == "text" else "double")
    if kind == "exported":
        exported = export.export(jit(lambda x: x + x))(np.zeros(3, np.float32))
        path.write_bytes(exported.serialize())
    elif kind == "bytecode":
        path.write_bytes(stablehlo.to_bytecode(stablehlo.parse(STABLEHLO)))
    else:
        path.write_text(f"// a comment\n{STABLEHLO}")
    np.save(tmp_path / "x.npy", np.float32([1, 2, 3]))
    assert hloom(capsys, "run", str(path), "--input", str(tmp_path / "x.npy"))[:2] == (
        0,
        "result 0: f32[3]\n[2. 4. 6.]\n",
    )
    code, out, _ = hloom(capsys, "check", str(path), "--compare")
    assert code == 0 and "equal" in out
    code, out, _ = hloom(capsys, "opt", str(path), "--passes", "dce")
    assert code == 0 and "f32[3]{0} add(" in out
    assert hloom(capsys, "aot", str(path), "--name", "twice", "-o", str(tmp_path / "out"))[0] == 0
    assert (tmp_path / "out" / "twice.c").exists()


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("%x, %x :", "%x, %y :", "3:28: the value %y is not defined before this use"),
        ("stablehlo.add %x, %x", "stablehlo.nothing %x", "3:10: the operation stablehlo.nothing in this form"),
        ("add %x, %x : tensor<3xf32>", "slice %x [0:4] : (tensor<3xf32>) -> tensor<3xf32>", "3:5: stablehlo.slice"),
    ],
)
def test_stablehlo_that_is_wrong(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, old: str, new: str, place: str
) -> None:
    path = tmp_path / "double.mlir"
    path.write_text(STABLEHLO.replace(old, new))
    code, out, err = hloom(capsys, "run", str(path), "--random")
    assert code == 1 and out == "" and f"{path}:{place}" in err


def test_an_exported_function_of_all_sizes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (size,) = export.symbolic_shape("b")
    exported = export.export(jit(lambda x: x + x))(ShapeDtypeStruct((size,), np.float32))
    path = tmp_path / "f.export"
    path.write_bytes(exported.serialize())
    code, _, err = hloom(capsys, "run", str(path), "--random")
    assert code == 1 and "tensor<?xf32> has a size that is known only when the program runs" in err
    path.write_bytes(exported.serialize()[:-40])
    assert hloom(capsys, "run", str(path), "--random")[0] == 1


def test_run_hlo_takes_stablehlo() -> None:
    for program in (STABLEHLO, stablehlo.to_bytecode(stablehlo.parse(STABLEHLO))):
        (result,) = run_hlo(program, np.float32([1, 2, 3]))
        assert result.tolist() == [2, 4, 6]
    with pytest.raises(HloParseError, match="bytecode"):
        run_hlo(b"no program", np.float32([1, 2, 3]))


def test_the_parser_of_hlo_knows_stablehlo() -> None:
    with pytest.raises(HloParseError, match=r"1:1: expected 'HloModule' \(hloom.hlo.stablehlo.parse reads StableHLO\)"):
        parse(STABLEHLO)
