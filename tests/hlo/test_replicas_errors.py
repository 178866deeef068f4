"""Programs of several devices that cannot go on: every device ends with an error that says why, and none hangs."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hloom.hlo import CollectiveError, ExecutionError, evaluate, evaluate_on_devices, parse
from hloom.hlo.collectives import (
    collective_timeout,
    current_communicator,
    local_device_count,
    run_on_devices,
    set_collective_timeout,
    set_local_device_count,
)
from hloom.hlo.custom_calls import register_custom_call, unregister_custom_call
from hloom.numba_backend.compiler import NumbaCompiler

import hloom


@pytest.fixture(autouse=True)
def _four_devices() -> Iterator[None]:
    devices, timeout = local_device_count(), collective_timeout()
    set_local_device_count(4)
    yield
    set_local_device_count(devices)
    set_collective_timeout(timeout)


def _run(text: str, arguments: list[list[Any]], how: str) -> Any:
    module = parse(text)
    if how == "evaluator":
        return evaluate_on_devices(module, arguments)
    return NumbaCompiler().compile(module).execute_on_devices(arguments)


HOW = pytest.mark.parametrize("how", ["evaluator", "numba"])
_ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
_BRANCHES = f"""HloModule m, replica_count=2
{_ADD}
yes {{ x = f32[3] parameter(0)\n ROOT r = f32[3] all-reduce(x), replica_groups={{}}, to_apply=add }}
no {{ x = f32[3] parameter(0)\n ROOT r = f32[3] %s }}
ENTRY e {{ x = f32[3] parameter(0)
  k = u32[] replica-id()
  z = u32[] constant(0)
  first = pred[] compare(k, z), direction=EQ
  ROOT r = f32[3] conditional(first, x, x), true_computation=yes, false_computation=no }}
"""
_TWO = [[np.float32([1, 2, 3])], [np.float32([4, 5, 6])]]


@HOW
def test_a_device_that_never_arrives_at_a_collective(how: str) -> None:
    """Replica 1 takes the other branch and finishes: the waiting replica raises at once."""
    started = time.monotonic()
    why = r"all-reduce.*devices \[0, 1\] cannot complete; device 0 waits for \[1\]"
    with pytest.raises(CollectiveError, match=why) as e:
        _run(_BRANCHES % "negate(x)", _TWO, how)
    assert "device 1 has finished its program" in str(e.value) and time.monotonic() - started < 30


@HOW
def test_devices_at_different_collectives(how: str) -> None:
    with pytest.raises(CollectiveError, match=r"same collective: device \d is at .*, device \d at ") as e:
        _run(_BRANCHES % "all-reduce(x), replica_groups={}, channel_id=7, to_apply=add", _TWO, how)
    assert "channel 7" in str(e.value)


@HOW
def test_devices_that_wait_for_each_other(how: str) -> None:
    """A cycle of groups: 0 waits for 1, which waits for 2, which waits for 0."""
    groups = ["{{0,1},{2}}", "{{1,2},{0}}", "{{2,0},{1}}"]
    branches = "\n".join(
        f"b{k} {{ x = f32[] parameter(0)\n ROOT r = f32[] all-reduce(x), replica_groups={g}, to_apply=add }}"
        for k, g in enumerate(groups)
    )
    text = f"""HloModule m, replica_count=3
{_ADD}
{branches}
ENTRY e {{ x = f32[] parameter(0)
  k = u32[] replica-id()
  i = s32[] convert(k)
  ROOT r = f32[] conditional(i, x, x, x), branch_computations={{b0, b1, b2}} }}
"""
    with pytest.raises(CollectiveError, match="cannot complete") as e:
        _run(text, [[np.float32(k)] for k in range(3)], how)
    assert str(e.value).count("waits at all-reduce") == 3


@HOW
def test_a_device_that_raises(how: str) -> None:
    def picky(x: Any) -> Any:
        if x.sum() > 10:
            raise ValueError("too large for me")
        return x

    register_custom_call("test.picky", picky)
    try:
        text = f"""HloModule m, replica_count=2
{_ADD}
ENTRY e {{ x = f32[3] parameter(0)
  y = f32[3] custom-call(x), custom_call_target="test.picky"
  ROOT r = f32[3] all-reduce(y), replica_groups={{}}, to_apply=add }}
"""
        with pytest.raises(ExecutionError, match="too large for me") as e:
            _run(text, _TWO, how)
        assert any("device 1" in note for note in e.value.__notes__)
    finally:
        unregister_custom_call("test.picky")


_ENDLESS = f"""HloModule m, replica_count=2
{_ADD}
cond {{ s = (u32[], f32[]) parameter(0)
  k = u32[] get-tuple-element(s), index=0
  z = u32[] constant(1)
  ROOT r = pred[] compare(k, z), direction=EQ }}
body {{ ROOT s = (u32[], f32[]) parameter(0) }}
ENTRY e {{ x = f32[] parameter(0)
  k = u32[] replica-id()
  t = (u32[], f32[]) tuple(k, x)
  w = (u32[], f32[]) while(t), condition=cond, body=body
  y = f32[] get-tuple-element(w), index=1
  ROOT r = f32[] all-reduce(y), replica_groups={{}}, to_apply=add }}
"""


@HOW
def test_a_device_that_runs_for_ever(how: str) -> None:
    """The other one does not wait longer than it may; the first is interrupted."""
    set_collective_timeout(0.5)
    with pytest.raises(CollectiveError, match=r"not complete after 0\.5 seconds; device 0 waits for"):
        _run(_ENDLESS, [[np.float32(1)], [np.float32(2)]], how)


def test_an_interrupt_reaches_all_devices() -> None:
    def interrupt() -> None:
        time.sleep(0.5)
        signal.raise_signal(signal.SIGINT)

    before = set(threading.enumerate())
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        _run(_ENDLESS, [[np.float32(1)], [np.float32(2)]], "numba")
    end = time.monotonic() + 60
    while {t for t in threading.enumerate() if t.name == "hloom device"} - before and time.monotonic() < end:
        time.sleep(0.05)
    assert not {t for t in threading.enumerate() if t.name == "hloom device"} - before


ARGUMENTS: dict[str, tuple[str, Any, str]] = {
    "too few devices": ("replica_count=5", [[]] * 5, "needs device 4, there are only 0 to 3"),
    "too few lists": ("replica_count=2", [[np.float32([1, 2, 3])]], "2 devices run .* arguments for 1"),
    "too few arrays": ("replica_count=2", [[], []], "takes 1 arrays"),
    "another type": ("replica_count=2", [[np.float32([1, 2, 3])], [np.int32([1, 2, 3])]], "must be f32"),
}


@HOW
@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_that_do_not_fit(case: str, how: str) -> None:
    header, arguments, why = ARGUMENTS[case]
    text = f"HloModule m, {header}\nENTRY e {{ x = f32[3] parameter(0)\n ROOT r = f32[3] negate(x) }}"
    with pytest.raises(ExecutionError, match=why):
        _run(text, arguments, how)


@pytest.mark.parametrize(
    ("assignment", "why"), [([0, 0], "2 different devices"), ([0, 9], "needs device 9"), ([-1, 0], "different devices")]
)
def test_assignments_that_do_not_fit(assignment: list[int], why: str) -> None:
    with pytest.raises(ExecutionError, match=why):
        run_on_devices(lambda device: None, 2, 1, assignment)


@HOW
@pytest.mark.parametrize(
    ("instruction", "why"),
    [
        ("all-reduce(x), replica_groups={{0,2},{1,3}}, to_apply=add", "needs [34] replicas"),
        ("all-reduce(x), replica_groups={{0}}, to_apply=add", "device 1 is in none of the groups"),
        ("all-reduce(x), replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add", "needs a channel_id"),
        ("collective-permute(x), source_target_pairs={{0,5}}", "needs 6 replicas"),
        ("collective-broadcast(x, n), replica_groups={{0,1}}, has_dynamic_root=true", r"from members \[3\]"),
    ],
)
def test_groups_that_do_not_fit(instruction: str, why: str, how: str) -> None:
    text = f"HloModule m, replica_count=2\n{_ADD}ENTRY e {{ x = f32[3] parameter(0)\n n = s32[1] constant({{3}})\n"
    with pytest.raises(ExecutionError, match=why):
        _run(f"{text} ROOT r = f32[3] {instruction} }}", _TWO, how)


@pytest.mark.parametrize("run", [evaluate, hloom.run_hlo])
@pytest.mark.parametrize("root", [1, -1])
def test_a_root_outside_of_the_group_of_one(root: int, run: Any) -> None:
    text = "HloModule m\nENTRY e { x = f32[3] parameter(0)\n n = s32[1] parameter(1)\n ROOT r = f32[3] "
    module = parse(f"{text}collective-broadcast(x, n), replica_groups={{}}, has_dynamic_root=true }}")
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(run(module, x, np.zeros(1, np.int32))[0], x)
    with pytest.raises(ExecutionError, match=rf"from members \[{root}\] of a group of 1"):
        run(module, x, np.array([root], np.int32))


def test_a_program_for_one_device_within_a_run() -> None:
    """A callback of a device may run programs: they are for it alone."""

    def function(device: Any) -> Any:
        assert current_communicator() is device
        return np.asarray(hloom.run_hlo("HloModule m\nENTRY e { ROOT r = u32[] replica-id() }")[0]).tolist()

    assert run_on_devices(function, 2) == [0, 0]


def test_runs_within_runs_and_beside_each_other() -> None:
    text = f"HloModule m, replica_count=2\n{_ADD}ENTRY e {{ x = f32[3] parameter(0)\n"
    module = parse(f"{text} ROOT r = f32[3] all-reduce(x), replica_groups={{}}, to_apply=add }}")
    executable = NumbaCompiler().compile(module)
    found = run_on_devices(lambda device: executable.execute_on_devices(_TWO), 4)
    for results in found:
        for (result,) in results:
            np.testing.assert_array_equal(result, [5, 7, 9])


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExecutionError, match="1 to 1024 devices, not"):
        set_local_device_count(0)
    hloom.config.update("hloom_collective_timeout", 12)
    assert hloom.config.hloom_collective_timeout == 12.0 == collective_timeout()
    with pytest.raises(ValueError, match="positive"):
        hloom.config.update("hloom_collective_timeout", 0)
    with pytest.raises(TypeError, match="hloom_collective_timeout must be a number"):
        hloom.config.update("hloom_collective_timeout", "soon")


def test_a_system_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """No device begins: it would wait for those that have no thread."""
    workers = import_module("hloom.hlo.collectives.workers")
    monkeypatch.setattr(workers, "_idle", [])
    start, left = threading.Thread.start, [1]

    def limited(self: threading.Thread) -> None:
        if not left:
            raise RuntimeError("can't start new thread")
        left.pop()
        start(self)

    began: list[int] = []
    set_local_device_count(3)
    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(ExecutionError, match=r"needs as many threads; the system gave 1 \(can't start new thread\)"):
        run_on_devices(lambda device: began.append(device.device), num_replicas=3)
    assert not began and len(workers._idle) == 1
    left.extend([1, 1])
    run_on_devices(lambda device: began.append(device.device), num_replicas=3)
    assert sorted(began) == [0, 1, 2]
