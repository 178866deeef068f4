"""rng and the process's random state: distributions, order, sharing between backends; properties of the bit generators
that cannot be compared with XLA."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hloom.hlo import evaluate, make_computation, make_constant, make_instruction, make_module, parse
from hloom.hlo.element_type import ElementType
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops.random import RandomDistribution, RngAttributes
from hloom.hlo.random_state import RANDOM_STATE, RandomState
from hloom.hlo.shape import Shape
from hloom.numba_backend.compiler import NumbaCompiler
from scipy import stats

import hloom

COUNT = 20_000


@pytest.fixture(autouse=True)
def _fixed_state() -> Iterator[None]:
    RANDOM_STATE.reset()
    yield
    RANDOM_STATE.reset()


def _draw(distribution: RandomDistribution, type_: ElementType, *parameters: float, backend: str) -> np.ndarray:
    given = ElementType.F32 if distribution is RandomDistribution.BERNOULLI else type_
    operands = [make_constant(np.asarray(p).astype(given.dtype)) for p in parameters]
    shape = Shape.array(type_, (COUNT,))
    root = make_instruction(Opcode.RNG, operands, RngAttributes(distribution), shape)
    return hloom.run_hlo(make_module("m", make_computation("main", root)), backend=backend)[0]


FLOATS = [ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64]
BACKENDS = ["numba", "evaluator"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("type_", FLOATS, ids=lambda t: t.value)
def test_uniform_floats(type_: ElementType, backend: str) -> None:
    drawn = _draw(RandomDistribution.UNIFORM, type_, -1, 3, backend=backend).astype(np.float64)
    assert drawn.min() >= -1 and drawn.max() < 3
    jitter = np.random.default_rng(0).uniform(-0.5, 0.5, COUNT) * (2.0**-7 if type_.byte_width == 2 else 0)
    assert stats.kstest(drawn + jitter, stats.uniform(-1, 4).cdf).pvalue > 1e-3


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("type_", [ElementType.F32, ElementType.F64], ids=lambda t: t.value)
def test_normal(type_: ElementType, backend: str) -> None:
    drawn = _draw(RandomDistribution.NORMAL, type_, 2, 0.5, backend=backend)
    assert np.isfinite(drawn).all()
    assert stats.kstest(drawn, stats.norm(2, 0.5).cdf).pvalue > 1e-3


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["s4", "s8", "u16", "s32", "u32", "s64", "u64"])
def test_uniform_integers(name: str, backend: str) -> None:
    type_ = ElementType(name)
    low = -3 if type_.is_signed else 2
    drawn = _draw(RandomDistribution.UNIFORM, type_, low, 7, backend=backend).astype(np.int64)
    counts = np.bincount(drawn - low, minlength=7 - low)
    assert len(counts) == 7 - low
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("backend", BACKENDS)
def test_bernoulli(backend: str) -> None:
    drawn = _draw(RandomDistribution.BERNOULLI, ElementType.PRED, 0.3, backend=backend)
    assert abs(drawn.mean() - 0.3) < 0.02


def test_a_wrong_distribution_is_noticed() -> None:
    drawn = _draw(RandomDistribution.UNIFORM, ElementType.F32, -1, 2.8, backend="numba")
    assert stats.kstest(drawn, stats.uniform(-1, 4).cdf).pvalue < 1e-3


TWO = """HloModule m
ENTRY e {
  a = f32[] constant(0)
  b = f32[] constant(1)
  x = f32[64] rng(a, b), distribution=rng_uniform
  y = f32[64] rng(a, b), distribution=rng_uniform
  ROOT t = (f32[64], f32[64]) tuple(x, y)
}"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_equal_draws_are_neither_merged_nor_folded(backend: str) -> None:
    x, y = hloom.run_hlo(TWO, backend=backend)
    again, _ = hloom.run_hlo(TWO, backend=backend)
    assert not np.array_equal(x, y) and not np.array_equal(x, again)
    RANDOM_STATE.reset()
    np.testing.assert_array_equal(hloom.run_hlo(TWO, backend=backend)[0], x)


def test_backends_draw_the_same() -> None:
    numba = hloom.run_hlo(TWO, backend="numba")
    RANDOM_STATE.reset()
    for mine, reference in zip(numba, hloom.run_hlo(TWO, backend="evaluator"), strict=True):
        np.testing.assert_array_equal(mine, reference)


LOOP = """HloModule m
body {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  a = f32[] constant(0)
  b = f32[] constant(1)
  x = f32[4] rng(a, b), distribution=rng_uniform
  w = f32[4] add(v, x)
  ROOT t = (s32[], f32[4]) tuple(n, w)
}
condition {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  limit = s32[] constant(1000)
  ROOT c = pred[] compare(i, limit), direction=LT
}
ENTRY e {
  z = s32[] constant(0)
  o = f32[4] constant({0, 0, 0, 0})
  s = (s32[], f32[4]) tuple(z, o)
  w = (s32[], f32[4]) while(s), condition=condition, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1
}"""


def test_each_iteration_draws_anew() -> None:
    (total,) = hloom.run_hlo(LOOP)
    assert np.all(np.abs(total - 500) < 40) and len(set(total.tolist())) == 4


STATE = "HloModule m\nENTRY e { ROOT s = u64[2] rng-get-and-update-state(), delta=5 }"


def test_the_state_is_shared_and_has_128_bits() -> None:
    RANDOM_STATE.reset(2**64 - 3)
    assert hloom.run_hlo(STATE)[0].tolist() == [2**64 - 3, 0]
    assert evaluate(parse(STATE))[0].tolist() == [2, 1]
    assert hloom.run_hlo(STATE, backend="evaluator")[0].tolist() == [7, 1]
    RANDOM_STATE.reset()
    assert hloom.run_hlo(STATE)[0].tolist() == [0x7012395, 0]  # as in XLA


def test_concurrent_executions_get_different_states() -> None:
    executable = NumbaCompiler().compile(parse(STATE))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: int(executable.execute([])[0][0]), range(200)))
    assert sorted(found) == list(range(0x7012395, 0x7012395 + 1000, 5))


def test_state_wraps() -> None:
    state = RandomState(2**128 - 1)
    assert state.advance(2) == 2**128 - 1
    assert state.advance(0) == 1


@pytest.mark.parametrize("name", ["s4", "s8", "s16", "s32", "s64"])
def test_signed_bits_are_the_unsigned_ones(name: str) -> None:
    """XLA's client gives bits as unsigned integers for every requested type, so signed ones have no oracle."""
    text = """HloModule m
    ENTRY e {{
      p = u64[2] parameter(0)
      ROOT r = (u64[2], {}[37]) rng-bit-generator(p), algorithm={}
    }}"""
    state = np.array([12345, 678], np.uint64)
    for algorithm in ("rng_philox", "rng_default", "rng_three_fry"):
        _, signed = hloom.run_hlo(text.format(name, algorithm), state)
        _, unsigned = hloom.run_hlo(text.format("u" + name[1:], algorithm), state)
        np.testing.assert_array_equal(signed.view(np.uint8), unsigned.view(np.uint8))
