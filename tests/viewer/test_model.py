"""The data of the viewer's page: ids in range, stages that follow each other, kernels that lead back to the user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo.errors import UnsupportedError

import hloom
import hloom.numpy as jnp
from hloom import hlo
from hloom.viewer.inspection import inspect, inspect_module
from hloom.viewer.model import model_of, to_text

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA = Path(__file__).parents[1] / "data"


def mnist_step() -> tuple[Any, tuple[Any, ...]]:
    """The training step of examples/train_mnist.py, and arguments."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        import train_mnist
    finally:
        sys.path.remove(str(EXAMPLES))
    parameters = train_mnist.init_params(hloom.random.key(0), [784, 128, 64, 10])
    state = parameters, hloom.tree.map(jnp.zeros_like, parameters)
    return train_mnist.train_step, (state, np.ones((32, 784), np.float32), np.zeros(32, np.int32), 0.05, 0.9)


def block(weights: Any, x: Any) -> Any:
    q, k, v = (x @ w for w in weights[:3])
    h = x + hloom.nn.softmax(q @ k.T / 8) @ v
    h = (h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-5)
    return jnp.mean((h + hloom.nn.gelu(h @ weights[3])) ** 2)


def transformer() -> tuple[Any, tuple[Any, ...]]:
    return hloom.value_and_grad(block), ([jnp.ones((64, 64)) * 0.01] * 4, jnp.ones((32, 64)))


def loop() -> tuple[Any, tuple[Any, ...]]:
    def f(x: Any, steps: Any) -> Any:
        return hloom.lax.scan(lambda c, t: (jnp.tanh(c @ t) + 1, c.sum()), x, steps)

    return f, (jnp.ones((16, 16)), jnp.ones((50, 16, 16)))


PROGRAMS = {"MNIST's step": mnist_step, "a transformer block": transformer, "a loop": loop}


def data_of(name: str, calls: int = 0) -> dict[str, Any]:
    f, args = PROGRAMS[name]()
    found: dict[str, Any] = json.loads(to_text(model_of(inspect(f, args, {}, calls))))
    return found


def check(data: dict[str, Any]) -> None:
    """Each number is in range; each table agrees with the others."""
    table = data["instructions"]
    count, computations = len(table["name"]), len(data["computations"])
    assert {len(column) for column in table.values()} == {count}

    def valid(ids: Any, most: int = count) -> bool:
        return all(type(i) is int and 0 <= i < most for i in ids)

    assert all(map(valid, table["operands"])) and all(map(valid, table["origin"]))
    assert all(valid(called, computations) for called in table["called"])
    for column in ("opcode", "shape", "op_name"):
        assert valid(table[column], len(data["strings"]))
    for source, line in zip(table["source"], table["line"], strict=True):
        assert source == -1 or _has_line(data["sources"][source], line)
    for computation in data["computations"]:
        inside = computation["instructions"]
        assert valid(inside) and valid([computation["root"], *computation["parameters"]])
        assert {computation["root"], *computation["parameters"]} <= set(inside)
        place = {i: k for k, i in enumerate(inside)}
        assert all(place[o] < k for i, k in place.items() for o in table["operands"][i])
    before: set[int] = set()
    for stage in data["stages"]:
        listed = stage["computations"]
        assert valid(listed, computations) and listed[0] == stage["entry"] and set(stage["fused"]) <= set(listed)
        now = {i for c in listed for i in data["computations"][c]["instructions"]}
        assert all(set(table["called"][i]) <= set(listed) for i in now)
        if before:
            assert all(set(table["origin"][i]) <= before for i in now - before)
            assert all(table["origin"][i] for i in now - before)
        for rule in stage["rules"]:
            assert rule["before"] in before | {-1} and set(rule["after"]) <= now and rule["text"].startswith("- %")
            assert valid([rule["rule"], rule["computation"]], len(data["strings"]))
        for gone, kept in stage["merged"]:
            assert gone in before - now and kept in before & now
        before = now
    kernels = len(data["kernels"])
    for kernel in data["kernels"]:
        assert kernel["instructions"] and set(kernel["instructions"]) <= before and kernel["text"]
    for row in data["rows"]:
        assert row["instruction"] in before | {-1} and -1 <= row["kernel"] < kernels
        if row["kernel"] >= 0 and row["kind"] in ("kernel", "loop"):
            assert row["instruction"] in data["kernels"][row["kernel"]]["instructions"]
    assert set(data["schedule"]) <= before
    for buffer in data["buffers"]:
        assert 0 <= buffer["first"] <= buffer["last"] <= max(len(data["schedule"]) - 1, 0)
        assert 0 <= buffer["logical"] <= buffer["size"] and buffer["offset"] >= 0
        assert all(type(v) is str or v in before for v in buffer["values"])


def _has_line(part: dict[str, Any], line: int) -> bool:
    return 0 <= line - part["first"] < len(part["lines"])


def ancestors(data: dict[str, Any], i: int) -> set[int]:
    """The instructions that an instruction, and what is inside of it, comes from; itself too."""
    table, found, stack = data["instructions"], {i}, [i]
    while stack:
        at = stack.pop()
        inside = [k for c in table["called"][at] for k in data["computations"][c]["instructions"]]
        for next in (*table["origin"][at], *inside):
            if next not in found:
                found.add(next)
                stack.append(next)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_tables(name: str) -> None:
    data = data_of(name)
    check(data)
    assert data["stages"][0]["name"] == "traced" and "fusion" in [s["name"] for s in data["stages"]]
    assert data["profile"] is None and data["devices"] is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_kernel_leads_back_to_lines_of_the_user(name: str) -> None:
    data = data_of(name)
    table = data["instructions"]
    traced = {i for c in data["stages"][0]["computations"] for i in data["computations"][c]["instructions"]}
    assert data["kernels"]
    for kernel in data["kernels"]:
        for i in kernel["instructions"]:
            origins = ancestors(data, i) & traced
            assert any(table["source"][o] >= 0 for o in origins), (kernel["name"], table["name"][i])


def test_the_lines_are_those_of_the_function() -> None:
    data = data_of("a transformer block")
    named = {(s, n) for s, n in zip(data["instructions"]["source"], data["instructions"]["line"]) if s >= 0}
    lines = [data["sources"][s]["lines"][n - data["sources"][s]["first"]] for s, n in named]
    assert any("hloom.nn.softmax(q @ k.T / 8)" in line for line in lines)
    assert sum(len(part["lines"]) for part in data["sources"]) < 40  # not the whole file


def test_times() -> None:
    f, args = PROGRAMS["MNIST's step"]()
    data = json.loads(to_text(model_of(inspect(f, args, {}, calls=3))))  # the state is donated, and is left as it was
    check(data)
    rows = [row for row in data["rows"] if row["seconds"]]
    assert len(rows) > 5 and all(row["calls"] == 1 for row in rows if row["kind"] == "kernel")
    assert 0 < sum(row["share"] for row in rows) <= 1.05
    assert any(row["of_memory"] for row in rows) and any(row["of_peak"] for row in rows)
    profile = data["profile"]
    assert profile["calls"] == 3 and profile["seconds"] > 0 and "GB/s" in profile["machine"]
    assert profile["lines"][0]["seconds"] == max(line["seconds"] for line in profile["lines"])
    f(*args)


def test_stages_of_a_function() -> None:
    args = jnp.ones(8), jnp.ones(8)
    lowered = hloom.jit(lambda x, y: jnp.tanh(x) * y).lower(*args)
    subjects: list[tuple[Any, tuple[Any, ...]]] = [
        (lambda x, y: jnp.tanh(x) * y, args), (lowered, ()), (lowered.compile(), ()), (lowered.module, ())
    ]  # fmt: skip
    found = [model_of(inspect(subject, given, {})) for subject, given in subjects]
    assert len({tuple(s["name"] for s in data["stages"]) for data in found}) == 1
    with pytest.raises(TypeError, match="not 3"):
        inspect(3, (), {})
    with pytest.raises(TypeError, match="takes no arguments"):
        inspect(lowered.module, args, {})
    with pytest.raises(UnsupportedError, match="needs the arguments"):
        inspect(lowered, (), {}, calls=1)


def test_an_hlo_file() -> None:
    module = hlo.parse((DATA / "hlo" / "layer_norm.hlo").read_text())
    found = inspect_module(module, is_traced=False)
    data = json.loads(to_text(model_of(found)))
    check(data)
    assert found.history.stages[-1].after is found.executable.module


def test_the_variants_of_an_autotuned_program_are_not_in_its_history() -> None:
    f = hloom.jit(lambda x: jnp.tanh(x @ x).sum(axis=0), compiler_options={"autotune": True})
    data = json.loads(to_text(model_of(inspect(f, (jnp.ones((96, 96)),), {}))))
    check(data)
    names = [stage["name"] for stage in data["stages"]]
    assert names.count("fusion") == 1 and data["passes"][0]["before"] < 20


SECRET = """
HloModule m
ENTRY e {{
  x = f32[4] parameter(0)
  ROOT y = f32[4] negate(x), metadata={{op_name="neg" source_file="{path}" source_line=1}}
}}
"""


@pytest.mark.parametrize("name", ["secret.txt", "../outside.py", "link.py"])
def test_a_file_does_not_bring_other_files_into_the_page(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for path in (here / "secret.txt", tmp_path / "outside.py", here / "own.py"):
        path.write_text("password = 1\n")
    (here / "link.py").symlink_to(tmp_path / "outside.py")
    monkeypatch.chdir(here)

    def sources(path: Path) -> Any:
        return model_of(inspect_module(hlo.parse(SECRET.format(path=path)), is_traced=False))["sources"]

    assert sources(here / name) == []
    assert sources(here / "own.py")[0]["lines"] == ["password = 1"]


def test_arrays_are_not_in_the_page() -> None:
    weights = jnp.arange(1000.0) + 0.123
    text = to_text(model_of(inspect(lambda x: x * weights, (jnp.ones(1000),), {})))
    assert str(float(weights[-1]))[:6] not in text


SHARDED = """
import json, sys
import hloom, hloom.numpy as jnp
from hloom.sharding import NamedSharding, PartitionSpec
from hloom.viewer.inspection import inspect
from hloom.viewer.model import model_of, to_text

x = hloom.device_put(jnp.ones((64, 32)), NamedSharding(hloom.make_mesh((2,), ("rows",)), PartitionSpec("rows")))
f = hloom.value_and_grad(lambda w, x: jnp.mean(jnp.tanh(x @ w) ** 2))
print(to_text(model_of(inspect(f, (jnp.ones((32, 32)), x), {}, 2))))
"""


def test_a_sharded_program() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SHARDED], env={**os.environ, "HLOOM_NUM_DEVICES": "2"}, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    data = json.loads(ran.stdout)
    check(data)
    assert [s["name"] for s in data["stages"]][:2] == ["traced", "spmd-partitioner"]
    assert "rows: 2" in data["devices"]["mesh"]
    collectives = data["devices"]["collectives"]
    assert collectives and all("all-reduce" in c["text"] and c["instruction"] >= 0 for c in collectives)
    rows = [row for row in data["rows"] if row["seconds"]]
    assert rows and all(row["calls"] == 1 for row in rows if row["kind"] == "kernel")  # of one device, not of both
    assert data["profile"]["calls"] == 2 and sum(row["share"] for row in rows) <= 1.05


@pytest.mark.slow
def test_five_thousand_instructions_are_small_and_quick() -> None:
    def f(x: Any) -> Any:
        for k in range(120):
            x = hloom.nn.softmax(jnp.tanh(x @ x.T) @ x / (k + 1)) + jnp.sin(x) * k
        return x.sum()

    lowered = hloom.jit(hloom.value_and_grad(f)).lower(jnp.ones((16, 16)))
    program = inspect(lowered, (), {})
    assert sum(len(c.instructions) for c in program.first.computations) > 5000
    started = time.perf_counter()
    text = to_text(model_of(program))
    assert time.perf_counter() - started < 10  # one second on an idle machine
    assert len(text) < 10e6


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "tpu"])
def test_tables_of_many_programs(target: str) -> None:
    for path in sorted(DATA.glob("*/*.hlo")):
        data = json.loads(to_text(model_of(inspect_module(hlo.parse(path.read_text()), target, is_traced=False))))
        check(data)


def test_tables_of_another_target_and_of_a_backend_without_passes() -> None:
    module = hlo.parse((DATA / "hlo" / "layer_norm.hlo").read_text())
    data = json.loads(to_text(model_of(inspect_module(module, "tpu", is_traced=False))))
    check(data)
    assert {buffer["space"] for buffer in data["buffers"]} >= {"VMEM"}
    assert any(buffer["logical"] < buffer["size"] for buffer in data["buffers"])  # padding
    data = json.loads(to_text(model_of(inspect_module(module, is_traced=False, backend="evaluator"))))
    check(data)
    assert [stage["name"] for stage in data["stages"]] == ["traced"] and data["kernels"] == data["rows"] == []
