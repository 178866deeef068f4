"""Programs that several devices run: what collectives mean, on the evaluator and compiled; what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo import ExecutionError, evaluate_on_devices, parse, verify
from hloom.hlo.collectives import local_device_count, set_local_device_count
from hloom.numba_backend.compiler import NumbaCompiler

import hloom
from hloom.command_line import main
from support.collective_cases import CASES, Collective, NDArray
from support.replica_modules import MODULES


@pytest.fixture(autouse=True, scope="module")
def _eight_devices() -> Iterator[None]:
    before = local_device_count()
    set_local_device_count(8)
    yield
    set_local_device_count(before)


def _leaves(value: Any) -> list[NDArray]:
    return list(value) if isinstance(value, tuple) else [value]


def _assert_same_bits(found: list[list[NDArray]], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for device, (results, value) in enumerate(zip(found, expected)):
        for result, wanted in zip(results, _leaves(value), strict=True):
            assert result.dtype == wanted.dtype and result.shape == wanted.shape
            assert result.tobytes() == np.ascontiguousarray(wanted).tobytes(), f"device {device}"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_meaning(case: Collective) -> None:
    module = parse(case.text)
    verify(module)
    arguments = [[a] for a in case.arguments()]
    expected = case.meaning([a for (a,) in arguments])
    _assert_same_bits(evaluate_on_devices(module, arguments), expected)
    _assert_same_bits(NumbaCompiler().compile(module).execute_on_devices(arguments), expected)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("target", ["cpu", "tpu"])
def test_modules(name: str, target: str) -> None:
    text, arguments, meaning = MODULES[name]
    module = parse(text)
    verify(module)
    assert parse(module.to_text()).to_text() == module.to_text()
    expected = meaning(arguments)
    for found in (
        evaluate_on_devices(module, arguments),
        NumbaCompiler().compile(module, target=target).execute_on_devices(arguments),
    ):
        _assert_same_bits(found, [tuple(each) for each in expected])


def test_small_collectives_on_many_devices() -> None:
    """More devices than cores, and many exchanges in a row."""
    module = parse(MODULES["a loop"].text.replace("constant(5)", "constant(200)"))
    arguments = MODULES["a loop"].arguments
    _assert_same_bits(
        NumbaCompiler().compile(module).execute_on_devices(arguments),
        [tuple(each) for each in evaluate_on_devices(module, arguments)],
    )


RECORDED = Path(__file__).parents[1] / "data" / "replicas.npz"
_ARRAYS = np.load(RECORDED)
_NAMES = sorted({key.partition("/")[0] for key in _ARRAYS.files})


def _recorded(name: str, kind: str) -> list[list[NDArray]]:
    """The arguments or results of each of four devices."""
    keys = [[k for k in _ARRAYS.files if k.startswith(f"{name}/{kind}/{device}/")] for device in range(4)]
    return [[_ARRAYS[k] for k in sorted(each, key=lambda k: int(k.rpartition("/")[2]))] for each in keys]


@pytest.mark.parametrize("name", _NAMES)
def test_what_jax_compiles_for_four_devices(name: str) -> None:
    """`record_replicas.py` has recorded it."""
    module = parse(_ARRAYS[f"{name}/text"].tobytes().decode())
    verify(module)
    assert module.num_partitions * module.replica_count == 4
    arguments, expected = _recorded(name, "argument"), _recorded(name, "result")
    for found in (
        evaluate_on_devices(module, arguments),
        NumbaCompiler().compile(module).execute_on_devices(arguments),
    ):
        for results, wanted in zip(found, expected, strict=True):
            for result, value in zip(results, wanted, strict=True):
                assert result.dtype == value.dtype
                np.testing.assert_allclose(result, value, rtol=2e-6, atol=1e-6)


def test_donated_arguments() -> None:
    """Each device's result takes over the memory of its own argument."""
    reduced = "ROOT r = f32[3] all-reduce(x), replica_groups={}, to_apply=add"
    add = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }"
    module = parse(f"HloModule m, replica_count=2\n{add}\nENTRY e {{ x = f32[3] parameter(0)\n {reduced} }}")
    executable = NumbaCompiler().compile(module, donated=[0])
    arguments = [[np.float32([1, 2, 3])], [np.float32([10, 20, 30])]]
    for _ in range(3):
        _assert_same_bits(executable.execute_on_devices(arguments), [np.float32([11, 22, 33])] * 2)
    np.testing.assert_array_equal(arguments[0][0], [1, 2, 3])  # `execute` gives the program a copy


def test_the_program_of_the_document() -> None:
    page = (Path(__file__).parents[2] / "docs" / "replicas.md").read_text()
    (text,) = [block for block in page.split("```") if block.lstrip().startswith("HloModule")]
    x = np.float32([1, 2, 3])
    for results in hloom.run_hlo(text, [x], [3 * x]):
        np.testing.assert_array_equal(results[0], 2 * x)
    with pytest.raises(ExecutionError, match="each argument must be the list of a device's arrays"):
        hloom.run_hlo(text, x, x)


def test_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "sum.hlo"
    path.write_text(MODULES["several operands"].text)
    np.savez(tmp_path / "in.npz", *[a for each in MODULES["several operands"].arguments for a in each])
    assert main(["run", str(path), "--input", str(tmp_path / "in.npz"), "-o", str(tmp_path / "out.npz")]) == 0
    stored = np.load(tmp_path / "out.npz")
    expected = MODULES["several operands"].meaning(MODULES["several operands"].arguments)
    for device, results in enumerate(expected):
        for k, result in enumerate(results):
            np.testing.assert_array_equal(stored[f"device{device}.result{k}"], result)
    assert main(["run", str(path), "--random", "-o", f"{tmp_path}/results/"]) == 0
    assert (tmp_path / "results" / "device2.result1.npy").exists()
    assert main(["run", str(path), "--random"]) == 0
    assert "device 2: replica 2, partition 0\nresult 0: f32[4]" in capsys.readouterr().out
    assert main(["check", str(path), "--compare"]) == 0
    assert capsys.readouterr().out.count("equal") == 9
    assert main(["run", str(path)]) == 2
    assert "3 arrays (f32[4], f32[], f32[200,70]) for each device of 3 replicas" in capsys.readouterr().err
    assert main(["bisect", str(path)]) == 2
    assert "`hloom run` and `hloom check` run such" in capsys.readouterr().err
