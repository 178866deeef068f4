"""What devices send: volumes of collectives, counted through loops, and the times of a simulated cluster."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hloom.hlo import Cluster, HloModule, Link, communication_analysis
from hloom.hlo.text.parser import parse

from hloom import hlo
from hloom.__main__ import main

ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }"
EVERYONE = "channel_id=1, replica_groups={{0,1,2,3}}"


def module_of(line: str, parameter: str = "f32[100]", before: str = "") -> HloModule:
    body = f"p = {parameter} parameter(0)\n{before}\nROOT r = {line}"
    return parse(f"HloModule m, num_partitions=4\n{ADD}\nENTRY main {{\n{body}\n}}")


GLOBAL = f"{EVERYONE}, use_global_device_ids=true"
CASES = {
    # (ring bytes, messages), (tree bytes, messages): 400 bytes on each of 4 devices
    f"f32[100] all-reduce(p), {GLOBAL}, to_apply=add": ((600, 6), (1600, 4)),
    f"f32[400] all-gather(p), {GLOBAL}, dimensions={{0}}": ((1200, 3), (1200, 2)),
    f"f32[25] reduce-scatter(p), {GLOBAL}, dimensions={{0}}, to_apply=add": ((300, 3), (300, 2)),
    f"f32[100] all-to-all(p), {EVERYONE}, dimensions={{0}}": ((300, 3), (400, 2)),
    f"f32[100] collective-broadcast(p), {EVERYONE}": ((800, 2), (800, 2)),
    "f32[100] collective-permute(p), channel_id=1, source_target_pairs={{0,1},{1,0}}": ((400, 1), (400, 1)),
    "f32[100] collective-permute(p), channel_id=1, source_target_pairs={{0,0}}": ((0, 0), (0, 0)),
    "f32[100] all-reduce(p), channel_id=1, use_global_device_ids=true, replica_groups={{0},{1},{2},{3}}, "
    "to_apply=add": ((0, 0), (0, 0)),
}


@pytest.mark.parametrize("line", CASES)
def test_volumes(line: str) -> None:
    found = communication_analysis(module_of(line))
    ring, tree = CASES[line]
    assert (found.sent("ring"), found.messages("ring")) == ring
    assert (found.sent("tree"), found.messages("tree")) == tree


def test_loops_multiply() -> None:
    text = f"""HloModule m, num_partitions=4
    {ADD}
    body {{
      s = (s32[], f32[100]) parameter(0)
      k = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      n = s32[] add(k, one)
      x = f32[100] get-tuple-element(s), index=1
      y = f32[100] all-reduce(x), {GLOBAL}, to_apply=add
      ROOT t = (s32[], f32[100]) tuple(n, y)
    }}
    condition {{
      s = (s32[], f32[100]) parameter(0)
      k = s32[] get-tuple-element(s), index=0
      n = s32[] constant(5)
      ROOT c = pred[] compare(k, n), direction=LT
    }}
    ENTRY main {{
      p = f32[100] parameter(0)
      z = s32[] constant(0)
      i = (s32[], f32[100]) tuple(z, p)
      ROOT w = (s32[], f32[100]) while(i), condition=condition, body=body
    }}"""
    (found,) = communication_analysis(parse(text))
    assert (found.times, found.is_exact, found.sent()) == (5, True, 600)
    (found,) = communication_analysis(parse(text.replace("n = s32[] constant(5)", "n = s32[] multiply(k, k)")))
    assert (found.times, found.is_exact) == (1, False)
    assert "1 or more" in str(communication_analysis(parse(text.replace("constant(5)", "multiply(k, k)"))))


def test_branches_count_as_the_largest() -> None:
    text = f"""HloModule m, num_partitions=4
    {ADD}
    sends {{ x = f32[100] parameter(0)  ROOT y = f32[100] all-reduce(x), {GLOBAL}, to_apply=add }}
    not {{ x = f32[100] parameter(0)  ROOT y = f32[100] negate(x) }}
    ENTRY main {{
      p = f32[100] parameter(0)
      c = pred[] parameter(1)
      ROOT r = f32[100] conditional(c, p, p), true_computation=not, false_computation=sends
    }}"""
    assert communication_analysis(parse(text)).sent() == 600


CLUSTER = Cluster(flops=1e6, inside=Link(1e-3, 1e6), between=Link(1e-2, 1e5), devices_per_host=4)


def seconds(line: str, cluster: Cluster = CLUSTER) -> float:
    return cluster.predict(module_of(line)).communicating


def test_times_of_a_host() -> None:
    """One latency and the bytes on the busiest link for each round."""
    all_reduce = f"f32[100] all-reduce(p), {GLOBAL}, to_apply=add"
    (collective,) = communication_analysis(module_of(all_reduce))
    assert CLUSTER.seconds_of(collective, "ring") == pytest.approx(6 * (1e-3 + 1e-4))
    assert CLUSTER.seconds_of(collective, "tree") == pytest.approx(4 * (1e-3 + 4e-4))
    assert seconds(all_reduce) == pytest.approx(4 * (1e-3 + 4e-4))  # the faster one


def test_devices_of_a_host_share_its_card() -> None:
    """Two hosts of two devices. In a ring one message goes each way between them; in a permutation two do."""
    cluster = dataclasses.replace(CLUSTER, devices_per_host=2)
    gather = f"f32[400] all-gather(p), {GLOBAL}, dimensions={{0}}"
    (collective,) = communication_analysis(module_of(gather))
    assert cluster.seconds_of(collective, "ring") == pytest.approx(3 * (1e-2 + 400 / 1e5))
    permute = "f32[100] collective-permute(p), channel_id=1, source_target_pairs={{0,2},{1,3}}"
    assert seconds(permute, cluster) == pytest.approx(1e-2 + 800 / 1e5)
    assert seconds(permute) == pytest.approx(1e-3 + 400 / 1e6)


def test_work_is_shared() -> None:
    text = (Path(__file__).parents[1] / "partition_programs" / "data_parallel.hlo").read_text()
    whole = CLUSTER.predict(parse(text))
    part = CLUSTER.predict(hlo.partition(parse(text), 8).module)
    assert whole.communicating == 0 and part.communicating > 0
    # 4 of the 8 devices have different parts; only the update of the weights is the same on all
    assert whole.computing / 4 < part.computing < whole.computing / 3


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(Path(__file__).parents[1] / "partition_programs" / "data_parallel.hlo")
    assert main(["scaling", file, "--devices", "1,2", "--cut", "6:0", "--cut", "7:0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["devices", "1", "2"]
    assert main(["scaling", file, "--collectives"]) == 0
    out = capsys.readouterr().out
    assert "all-reduce" in out and "the devices have terms of the sum" in out
    assert main(["scaling", file, "--devices", "3"]) == 2
    assert "--cut" in capsys.readouterr().err
    assert main(["scaling", file, "--devices", "2", "--cut", "99:0"]) == 2
    assert "arguments 0 to 7" in capsys.readouterr().err
    assert main(["scaling", file, "--devices", "5", "--cut", "6:0"]) == 1
    assert "64 elements, which 5 devices" in capsys.readouterr().err
