"""Infeed, outfeed, send and recv, on the evaluator and compiled; passes keep side effects, in their order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hloom.hlo import ExecutionError, HloModule, Shape, evaluate, verify
from hloom.hlo.backend import optimize
from hloom.hlo.effects import effects_of, has_side_effect
from hloom.hlo.host_queues import HOST_QUEUES, transfer_from_outfeed, transfer_to_infeed
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.manager import PassOptions
from hloom.hlo.text.parser import parse
from hloom.numba_backend.compiler import NumbaCompiler

from hloom.backend_check.op_values import NDArray

Run = Callable[..., list[NDArray]]


@pytest.fixture(autouse=True)
def _empty_queues(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    HOST_QUEUES.clear()
    monkeypatch.setattr(HOST_QUEUES, "timeout", 0.1)
    yield
    HOST_QUEUES.clear()


@pytest.fixture(params=["evaluator", "numba"])
def run(request: pytest.FixtureRequest) -> Run:
    def evaluated(module: HloModule, *arguments: NDArray) -> list[NDArray]:
        return evaluate(module, *arguments)

    def compiled(module: HloModule, *arguments: NDArray) -> list[NDArray]:
        return NumbaCompiler().compile(module).execute(list(arguments))

    return evaluated if request.param == "evaluator" else compiled


FEED = """
HloModule feed
ENTRY main {
  t = token[] after-all()
  i = ((f32[3], s32[]), token[]) infeed(t)
  d = (f32[3], s32[]) get-tuple-element(i), index=0
  t2 = token[] get-tuple-element(i), index=1
  o = token[] outfeed(d, t2), outfeed_shape=(f32[3]{0}, s32[])
  a = f32[3] get-tuple-element(d), index=0
  i2 = (f32[3], token[]) infeed(o)
  b = f32[3] get-tuple-element(i2), index=0
  c = f32[3] add(a, b)
  o2 = token[] outfeed(c, t2), outfeed_shape=f32[3]{0}
  ROOT r = f32[3] multiply(a, b)
}"""


def test_infeed_and_outfeed(run: Run) -> None:
    module = parse(FEED)
    transfer_to_infeed((np.float32([1, 2, 3]), np.int32(5)))
    transfer_to_infeed(np.float32([10, 20, 30]))
    (result,) = run(module)
    np.testing.assert_array_equal(result, np.float32([10, 40, 90]))
    first = transfer_from_outfeed(Shape.parse("(f32[3], s32[])"))
    np.testing.assert_array_equal(first[0], np.float32([1, 2, 3]))
    assert first[1] == 5
    np.testing.assert_array_equal(transfer_from_outfeed(Shape.parse("f32[3]")), np.float32([11, 22, 33]))


def test_an_empty_queue_is_an_error_after_a_while(run: Run) -> None:
    with pytest.raises(ExecutionError, match=r"nothing arrived in the queue of infeed for 0.1 s; .*\(f32\[3\], "):
        run(parse(FEED))


def test_a_value_of_another_type_is_an_error(run: Run) -> None:
    transfer_to_infeed(np.float32([1, 2]))
    with pytest.raises(ExecutionError, match=r"queue of infeed is f32\[2\], not \(f32\[3\], s32\[\]\)"):
        run(parse(FEED))


def test_a_program_waits_for_another_thread(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HOST_QUEUES, "timeout", 30.0)

    def feed() -> None:
        transfer_to_infeed((np.float32([1, 2, 3]), np.int32(5)))
        transfer_to_infeed(np.float32([10, 20, 30]))

    timer = threading.Timer(0.05, feed)
    timer.start()
    (result,) = run(parse(FEED))
    timer.join()
    np.testing.assert_array_equal(result, np.float32([10, 40, 90]))


def test_send_to_oneself(run: Run) -> None:
    text = """
    HloModule loop
    ENTRY main {
      x = (f32[3], s32[]) parameter(0)
      t = token[] after-all()
      r = ((f32[3], s32[]), u32[], token[]) recv(t), channel_id=3
      s = ((f32[3], s32[]), u32[], token[]) send(x, t), channel_id=3
      d = ((f32[3], s32[]), token[]) recv-done(r), channel_id=3
      e = token[] send-done(s), channel_id=3
      ROOT y = (f32[3], s32[]) get-tuple-element(d), index=0
    }"""
    vector, number = run(parse(text), np.float32([1, 2, 3]), np.int32(4))
    np.testing.assert_array_equal(vector, np.float32([1, 2, 3]))
    assert number == 4


ORDERED = """
HloModule ordered
body {
  s = (s32[], s32[], token[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  v = s32[] get-tuple-element(s), index=1
  t = token[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  u = token[] outfeed(v, t)
  n1 = s32[] subtract(n, one)
  v1 = s32[] add(v, v)
  ROOT r = (s32[], s32[], token[]) tuple(n1, v1, t)
}
condition {
  s = (s32[], s32[], token[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  zero = s32[] constant(0)
  ROOT r = pred[] compare(n, zero), direction=GT
}
callee {
  x = s32[] parameter(0)
  t = token[] after-all()
  y = s32[] multiply(x, x)
  o = token[] outfeed(y, t)
  p = token[] outfeed(y, t)
  ROOT r = s32[] add(x, x)
}
left { x = s32[] parameter(0)
  t = token[] after-all()
  o = token[] outfeed(x, t)
  ROOT r = s32[] negate(x) }
right { x = s32[] parameter(0)
  ROOT r = s32[] add(x, x) }
ENTRY main {
  x = s32[] parameter(0)
  t = token[] after-all()
  c = s32[] call(x), to_apply=callee
  f = s32[] fusion(c), kind=kLoop, calls=callee
  three = s32[] constant(3)
  w = (s32[], s32[], token[]) tuple(three, x, t)
  l = (s32[], s32[], token[]) while(w), condition=condition, body=body
  one = s32[] constant(1)
  w1 = (s32[], s32[], token[]) tuple(one, x, t)
  l1 = (s32[], s32[], token[]) while(w1), condition=condition, body=body
  zero = s32[] constant(0)
  w0 = (s32[], s32[], token[]) tuple(zero, x, t)
  l0 = (s32[], s32[], token[]) while(w0), condition=condition, body=body
  yes = pred[] constant(true)
  b = s32[] conditional(yes, x, x), true_computation=left, false_computation=right
  no = pred[] compare(x, zero), direction=LT
  b2 = s32[] conditional(no, x, x), true_computation=left, false_computation=left
  a = ((s32[]), s32[]) async-start(x), calls=left
  ROOT r = s32[] add(x, x)
}"""


def _outfed(count: int) -> list[int]:
    return [int(transfer_from_outfeed(Shape.parse("s32[]"))) for _ in range(count)]


def test_effects_happen_although_nobody_uses_their_results(run: Run) -> None:
    """Two by the call, two by the fusion, three by the loop, one by each of the others but the loop of no steps."""
    (result,) = run(parse(ORDERED), np.int32(5))
    assert result == 10
    assert _outfed(11) == [25, 25, 100, 100, 5, 10, 20, 5, 5, 5, 5]
    with pytest.raises(ExecutionError, match="nothing arrived"):
        _outfed(1)


def test_passes_keep_effects() -> None:
    module, _ = optimize(parse(ORDERED), options=PassOptions(verify=True))
    verify(module)
    assert sum(i.opcode is Opcode.OUTFEED for i in module.instructions()) == 10


def test_what_has_an_effect() -> None:
    module = parse(ORDERED)
    acting = {i.name for i in effects_of(module.entry)}
    assert acting == {"c", "f", "l", "l1", "l0", "b", "b2", "a"}
    barrier = parse("HloModule m\nENTRY main {\nx = f32[] parameter(0)\nROOT b = f32[] opt-barrier(x)\n}").entry.root
    assert not has_side_effect(barrier)


def test_kernels_do_not_reach_across_effects(run: Run) -> None:
    """`a` would be computed with `b`, which needs a value that is fed in after `a` is fed out."""
    text = """
    HloModule across
    ENTRY main {
      x = f32[4] parameter(0)
      t = token[] after-all()
      a = f32[4] exponential(x)
      o = token[] outfeed(a, t)
      i = (f32[4], token[]) infeed(t)
      d = f32[4] get-tuple-element(i), index=0
      b = f32[4] add(a, d)
      ROOT r = f32[4] negate(b)
    }"""
    module = parse(text)
    optimized, _ = optimize(module)
    order = [i.opcode for i in optimized.entry.instructions if has_side_effect(i)]
    assert order == [Opcode.OUTFEED, Opcode.INFEED]
    transfer_to_infeed(np.ones(4, np.float32))
    (result,) = run(module, np.zeros(4, np.float32))
    np.testing.assert_array_equal(result, np.full(4, -2, np.float32))
