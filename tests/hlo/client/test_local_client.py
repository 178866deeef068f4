"""LocalClient: data for computations and results back; the axpy tutorial."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo import (
    Computation,
    ComputationBuilder,
    ExecutionError,
    GlobalData,
    Literal,
    LocalClient,
    Shape,
    UnsupportedElementTypeError,
    UnsupportedError,
    parse,
)

import axpy
import hloom
from hloom import hlo


@pytest.fixture(params=["evaluator", "numba"])
def client(request: pytest.FixtureRequest) -> LocalClient:
    return LocalClient(request.param)


def sum_and_difference() -> Computation:
    builder = ComputationBuilder("both")
    x, y = (builder.parameter(k, Shape.parse("f32[3]"), "xy"[k]) for k in range(2))
    builder.tuple([builder.add(x, y), builder.tuple([builder.sub(x, y)])])
    return builder.build()


X, Y = np.array([1, 2, 3], np.float32), np.array([10, 20, 30], np.float32)


def test_execute_and_transfer(client: LocalClient) -> None:
    data = [client.transfer_to_server(Literal(v)) for v in (X, Y)]
    result = client.execute_and_transfer(sum_and_difference(), data)
    assert result == (Literal(X + Y), (Literal(X - Y),))


def test_results_are_arguments(client: LocalClient) -> None:
    """Data stays where it is from one execution to the next."""
    computation = sum_and_difference()
    pair = client.execute(computation, [client.transfer_to_server(X), client.transfer_to_server(Y)])
    assert client.get_shape(pair) == pair.shape == Shape.parse("(f32[3], (f32[3]))")
    total, inner = client.deconstruct_tuple(pair)
    (difference,) = client.deconstruct_tuple(inner)
    again = client.execute(computation, [total, difference])
    assert client.transfer(again) == (Literal(2 * X), (Literal(2 * Y),))


def test_tuples_as_arguments(client: LocalClient) -> None:
    builder = ComputationBuilder("second")
    pair = builder.parameter(0, Shape.parse("(f32[3], (s32[]))"), "pair")
    builder.get_tuple_element(builder.get_tuple_element(pair, 1), 0)
    data = client.transfer_to_server((Literal(X), (7,)))
    assert client.execute_and_transfer(builder.build(), [data]) == Literal(np.int32(7))


def test_transfer_copies(client: LocalClient) -> None:
    array = X.copy()
    data = client.transfer_to_server(array)
    array[:] = 0
    assert client.transfer(data) == Literal(X)


def test_transfer_in_process(client: LocalClient) -> None:
    """Memory is shared: no copy on the way in, a view on the way out."""
    array = X.copy()
    data = client.transfer_to_server_in_process(array)
    view = client.transfer_in_process(data)
    assert np.shares_memory(view, array) and not view.flags.writeable
    destination = np.zeros(3, np.float32)
    assert client.transfer_in_process(data, destination) is destination
    assert destination.tolist() == X.tolist()
    strided = client.transfer_to_server_in_process(np.arange(6, dtype=np.float32)[::2])
    assert client.transfer(strided) == Literal(np.array([0, 2, 4], np.float32))


@pytest.mark.parametrize("destination", [np.zeros(3), np.zeros(4, np.float32)], ids=["type", "size"])
def test_wrong_destinations(destination: np.ndarray[Any, Any]) -> None:
    client = LocalClient("evaluator")
    with pytest.raises(ExecutionError, match=r"the destination of f32\[3\] must be of that type, not an array of"):
        client.transfer_in_process(client.transfer_to_server(X), destination)


def test_unregister(client: LocalClient) -> None:
    data = client.transfer_to_server(X)
    client.unregister(data)
    with pytest.raises(ExecutionError, match="was unregistered"):
        client.transfer(data)
    with pytest.raises(ExecutionError, match="was unregistered"):
        client.execute(sum_and_difference(), [data, data])
    assert "unregistered" in repr(data)


def test_tuples_are_no_arrays() -> None:
    client = LocalClient("evaluator")
    pair = client.transfer_to_server((1, 2.0))
    assert pair.shape == Shape.parse("(s32[], f32[])")
    with pytest.raises(ExecutionError, match="deconstruct_tuple"):
        client.transfer_in_process(pair)
    with pytest.raises(TypeError, match="deconstruct_tuple"):
        np.asarray(pair)
    with pytest.raises(ExecutionError, match="no tuple"):
        client.deconstruct_tuple(client.transfer_to_server(1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X,), "both takes 2 arguments, not 1"),
        ((X, X.astype(np.float64)), r"argument 1 of both must be f32\[3\], not f64\[3\]"),
        ((X[:2], X), r"argument 0 of both must be f32\[3\], not f32\[2\]"),
    ],
    ids=["count", "type", "size"],
)
def test_wrong_arguments(client: LocalClient, arguments: tuple[Any, ...], message: str) -> None:
    data = [client.transfer_to_server(a) for a in arguments]
    with pytest.raises(ExecutionError, match=message):
        client.execute(sum_and_difference(), data)


def test_arguments_must_be_transferred(client: LocalClient) -> None:
    with pytest.raises(ExecutionError, match="must be a result of transfer_to_server, not ndarray"):
        client.execute(sum_and_difference(), [X, Y])  # type: ignore[list-item]


def test_values_without_an_element_type() -> None:
    with pytest.raises(UnsupportedElementTypeError, match="dtype <U4 has no HLO element type"):
        LocalClient("evaluator").transfer_to_server(np.array(["text"]))


def test_layouts_are_the_programs_own_business(client: LocalClient) -> None:
    """Data is row-major, with any layouts of a program's parameters and result."""
    builder = ComputationBuilder("column_major")
    x = builder.parameter(0, Shape.parse("f32[2,3]{0,1}"), "x")
    builder.neg(x)
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = client.execute_and_transfer(builder.build(), [client.transfer_to_server(array)])
    assert result == Literal(-array)
    text = "HloModule m\nENTRY e {\n  p = f32[2,3]{0,1} parameter(0)\n  ROOT c = f32[2,3]{0,1} copy(p)\n}\n"
    copied = client.execute(Computation(parse(text).entry), [client.transfer_to_server(array)])
    assert client.transfer(copied) == Literal(array)


def test_a_computation_is_compiled_once_while_it_lives() -> None:
    client = LocalClient("evaluator")
    computation = sum_and_difference()
    executable = client.compile(computation)
    assert client.compile(computation) is executable
    gone = weakref.ref(executable)
    del computation, executable
    gc.collect()
    assert gone() is None


def test_compiled_programs_can_be_looked_into() -> None:
    compiled = LocalClient("numba").compile(sum_and_difference())
    assert compiled.kernels() and "fusion" in compiled.as_text()


def test_compute_constant() -> None:
    client = LocalClient("evaluator")
    builder = ComputationBuilder(client, "constants")
    handle = builder.mul(builder.constant_r0(6), builder.constant_r0(7))
    assert client.compute_constant(builder, handle) == Literal(np.int32(42))


def test_backends() -> None:
    assert LocalClient("evaluator").backend == "evaluator"
    with pytest.raises(UnsupportedError, match=r"no backend named 'gpu'; known: numba, evaluator"):
        LocalClient("gpu")
    before = hloom.config.hloom_backend
    try:
        hloom.config.update("hloom_backend", "evaluator")
        assert LocalClient().backend == "evaluator"
    finally:
        hloom.config.update("hloom_backend", before)
    assert LocalClient().backend == before
    assert hloom.LocalClient is hlo.LocalClient


def test_the_ir_alone_finds_the_backends() -> None:
    """A program that imports `hloom.hlo` and nothing else gets the backend that compiles."""
    program = "import hloom.hlo as h; c = h.LocalClient(); print(c.backend, type(c._compiler).__name__)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.split() == ["numba", "NumbaCompiler"]


def test_global_data_of_a_literal_is_not_copied() -> None:
    literal = Literal(X)
    assert np.shares_memory(np.asarray(GlobalData.of_literal(literal)), literal.array)


# ---- the tutorial


def test_axpy(client: LocalClient) -> None:
    """With parameters and with constants, as in "Getting started"."""
    expected = Literal(np.float32(2.5) * X + Y)
    alpha = Literal(np.float32(2.5))
    computation, result = axpy.compute_axpy_parameters(client, alpha, Literal(X), Literal(Y))
    assert result == expected
    assert [p.name for p in computation.hlo.parameters] == ["alpha", "x", "y"]
    computation, result = axpy.compute_axpy_constants(client, 2.5, X.tolist(), Y.tolist())
    assert result == expected
    assert computation.parameter_shapes == ()


def test_axpy_constants_are_folded() -> None:
    """As the tutorial says of constants: the compiler computes the whole result."""
    client = LocalClient("numba")
    computation, _ = axpy.compute_axpy_constants(client, 2.5, X.tolist(), Y.tolist())
    assert [i.opcode.value for i in client.compile(computation).module.instructions()] == ["constant"]


def test_the_example_runs(root: Path) -> None:
    command = [sys.executable, str(root / "examples" / "axpy.py"), "--size", "3"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.count("[1.0, 3.5, 6.0]") == 2
    assert "multiply(%broadcast, %x)" in ran.stdout and "constant({0, 1, 2})" in ran.stdout
