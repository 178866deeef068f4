"""The sections of "Operation Semantics" (XLA's first documentation, 2017) with examples that depend on more than
their operands: Infeed, CustomCall, the Rng sections; and the C++ interface's Trace."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
import pytest
from hloom.hlo import BuildError, Computation, ComputationBuilder, ExecutionError, Literal, LocalClient, Shape
from hloom.hlo.host_queues import HOST_QUEUES

import hloom
from hloom.backend_check.op_values import NDArray
from support.seed_program import built, f32, run


@pytest.fixture(params=["evaluator", "numba"])
def client(request: pytest.FixtureRequest) -> LocalClient:
    return LocalClient(request.param)


@pytest.fixture(autouse=True)
def _empty_queues() -> Iterator[None]:
    HOST_QUEUES.clear()
    yield
    HOST_QUEUES.clear()


# ---- Infeed, Outfeed


def two_loops_that_read(times: int) -> Computation:
    """The section's result1 = while(...) { Infeed(shape) }, result2 = while(..., init = result1) { Infeed(shape) }.

    Each loop appends `times` values to the sum so far: result = 2 * result + value.
    """
    builder = ComputationBuilder("two_loops")
    state_shape = Shape.parse("(s32[], f32[])")

    def loop(name: str, until: int) -> tuple[Computation, Computation]:
        test = builder.create_sub_builder(f"{name}_condition")
        test.lt(test.get_tuple_element(test.parameter(0, state_shape), 0), test.constant_r0(until))
        body = builder.create_sub_builder(f"{name}_body")
        state = body.parameter(0, state_shape)
        value = body.infeed(Shape.parse("f32[]"))
        total = body.add(body.mul(body.get_tuple_element(state, 1), body.constant_r0(2.0)), value)
        body.tuple([body.add(body.get_tuple_element(state, 0), body.constant_r0(1)), total])
        return test.build(), body.build()

    first = builder.while_(*loop("first", times), builder.tuple([builder.constant_r0(0), builder.constant_r0(0.0)]))
    second = builder.while_(*loop("second", 2 * times), first)
    builder.get_tuple_element(second, 1)
    return builder.build()


def test_infeed_in_two_loops(client: LocalClient) -> None:
    """The loops read in order: 1, 0, 0, 1 are the digits of 9."""
    for value in (1, 0, 0, 1):
        client.transfer_to_infeed(np.float32(value))
    assert client.execute_and_transfer(two_loops_that_read(2)) == Literal(np.float32(9))


def test_infeed_of_tuples_and_outfeed(client: LocalClient) -> None:
    builder = ComputationBuilder("echo")
    shape = Shape.parse("(f32[2], s32[])")
    fed = builder.infeed(shape)
    builder.outfeed(builder.get_tuple_element(fed, 0))
    builder.outfeed(fed)
    value = (Literal(f32(1, 2)), Literal(np.int32(3)))
    client.transfer_to_infeed(value)
    result = client.execute_and_transfer(builder.build())
    assert result == value[0]  # the last expression; outfeeds are none
    assert client.transfer_from_outfeed(Shape.parse("f32[2]")) == value[0]
    assert client.transfer_from_outfeed(shape) == value


def test_infeed_of_an_empty_tuple(client: LocalClient) -> None:
    """The section: "effectively a nop and proceeds without reading any data"."""
    builder = ComputationBuilder("nothing")
    builder.infeed(Shape.tuple(()))
    builder.infeed(Shape.parse("f32[]"))
    client.transfer_to_infeed(np.float32(3))
    assert client.execute_and_transfer(builder.build()) == Literal(np.float32(3))


def test_infeed_of_another_type(client: LocalClient) -> None:
    builder = ComputationBuilder("typed")
    builder.infeed(Shape.parse("f32[]"))
    client.transfer_to_infeed(np.int32(1))
    with pytest.raises(ExecutionError, match=r"the next value in the queue of infeed is s32\[\], not f32\[\]"):
        client.execute(builder.build())


# ---- CustomCall


@pytest.fixture
def myfunc() -> Iterator[list[tuple[NDArray, ...]]]:
    """The section's myfunc; its arguments are kept."""
    seen: list[tuple[NDArray, ...]] = []

    def function(x: NDArray, y: NDArray) -> NDArray:
        seen.append((x.copy(), y.copy()))
        z = np.zeros((3, 3), np.float32)
        z[0, 0] = x[1] + y[1, 0]
        return z

    hloom.register_custom_call("myfunc", function)
    yield seen
    hloom.unregister_custom_call("myfunc")


@pytest.mark.parametrize("method", ["custom_call", "custom_call_op"])
def test_custom_call(client: LocalClient, method: str, myfunc: list[tuple[NDArray, ...]]) -> None:
    builder = ComputationBuilder("custom")
    x = builder.parameter(0, Shape.parse("f32[2]"), "x")
    y = builder.parameter(1, Shape.parse("f32[2,3]"), "y")
    getattr(builder, method)("myfunc", [x, y], Shape.parse("f32[3,3]"))
    arguments = [f32(1, 2), f32([[10, 20, 30], [40, 50, 60]])]
    result = client.execute_and_transfer(builder.build(), [client.transfer_to_server(a) for a in arguments])
    ((x_seen, y_seen),) = myfunc
    assert x_seen.tolist() == [1, 2] and y_seen.tolist() == [[10, 20, 30], [40, 50, 60]]
    assert isinstance(result, Literal)
    assert result.array.tolist() == [[42, 0, 0], [0, 0, 0], [0, 0, 0]]


# ---- Trace


def test_trace(client: LocalClient, caplog: pytest.LogCaptureFixture) -> None:
    """Each execution logs the operand; the computation returns what it would without."""
    builder = ComputationBuilder("traced")
    x = builder.parameter(0, Shape.parse("f32[2]"), "x")
    y = builder.neg(x)
    builder.trace("y is", y)
    computation = builder.build()
    assert computation.hlo.root is y.instruction
    with caplog.at_level(logging.INFO, logger="hloom.trace"):
        for value in (1, 2):
            client.execute(computation, [client.transfer_to_server(f32(value, 0.5))])
    assert caplog.messages == ["y is: f32[2] [-1.  -0.5]", "y is: f32[2] [-2.  -0.5]"]


# ---- random numbers

SHAPE = "f32[200,50]"
COUNT = 10_000


@pytest.mark.parametrize("backend", ["evaluator", "numba"])
def test_rng_normal(backend: str) -> None:
    """Mean and variance are those asked for, within five standard errors."""
    values = run(lambda b, g: b.rng_normal(g(3.0), g(2.0), Shape.parse(SHAPE)), backend)
    assert values.dtype == np.float32 and values.shape == (200, 50)
    assert abs(values.mean() - 3) < 5 * 2 / COUNT**0.5
    assert abs(values.var() / 4 - 1) < 5 * (2 / COUNT) ** 0.5
    inside = np.abs(values - 3) < 2
    assert abs(inside.mean() - 0.6827) < 5 * (0.6827 * 0.3173 / COUNT) ** 0.5


@pytest.mark.parametrize("backend", ["evaluator", "numba"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint32])
def test_rng_uniform(backend: str, dtype: type) -> None:
    """In [a, b), and every tenth of it is as likely. The types that the section admits."""
    shape = Shape.parse(SHAPE.replace("f32", {np.float32: "f32", np.int32: "s32", np.uint32: "u32"}[dtype]))
    values = run(lambda b, g: b.rng_uniform(g(10, dtype), g(30, dtype), shape), backend)
    assert values.dtype == dtype and values.shape == (200, 50)
    assert values.min() >= 10 and values.max() < 30
    counts, _ = np.histogram(values, bins=10, range=(10, 30))
    assert np.all(np.abs(counts - COUNT / 10) < 5 * (COUNT * 0.1 * 0.9) ** 0.5)


@pytest.mark.parametrize("backend", ["evaluator", "numba"])
def test_rng_bernoulli(backend: str) -> None:
    values = run(lambda b, g: b.rng_bernoulli(g(0.3), Shape.parse("u32[200,50]")), backend)
    assert values.dtype == np.uint32 and set(values.ravel().tolist()) == {0, 1}
    assert abs(values.mean() - 0.3) < 5 * (0.3 * 0.7 / COUNT) ** 0.5


def test_rng_draws_anew_each_time(client: LocalClient) -> None:
    computation, values = built(lambda b, g: b.rng_uniform(g(0.0), g(1.0), Shape.parse("f32[8]")))
    data = [client.transfer_to_server(v) for v in values]
    first, second = (client.execute_and_transfer(computation, data) for _ in range(2))
    assert first != second


@pytest.mark.parametrize("shape", ["f32[3]", "s32[3]"])
def test_rng_bernoulli_of_another_type(shape: str) -> None:
    """The section: "the output shape needs to have elemental type U32"."""
    builder = ComputationBuilder("wrong")
    builder.rng_bernoulli(builder.constant_r0(np.complex64(1)), Shape.parse(shape))
    with pytest.raises(BuildError, match=r"ComputationBuilder\.rng_bernoulli\(c64\[\]\).*\[rng_c\d\]"):
        builder.build()
