"""The SPMD partitioner: partitioned programs, run on all their devices, compute what the whole program computes."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo import HloSharding, Opcode, Shape, ShardingError, UnsupportedError, collectives, custom_calls
from hloom.hlo.backend import get_compiler
from hloom.hlo.passes.partition import Partitioned, is_partitioned, needs_partitioning, partition, partitions_of
from hloom.hlo.passes.partition.axes import DeviceMesh, mesh_of
from hloom.hlo.passes.partition.collectives import Cause, Collectives
from hloom.hlo.passes.partition.reshard import reshard
from hloom.hlo.passes.partitioning import Partition, WholeArrays, with_partitions
from hloom.hlo.text.parser import parse

from hloom import hlo
from hloom.backend_check.op_table import CASES, OpCase, build_module, check_results, make_inputs
from support.lockstep import cut, put_together, run_on_devices
from support.partitions import expected_of, random_partition, run_partitioned
from support.random_modules import random_arguments, random_module

# Random shardings of every op, and of random programs

_OF_DEVICES = ("all-", "collective-", "reduce-scatter", "ragged-all", "partition-id", "replica-id")
_RANDOM = ("rng", "rng-get-and-update-state")


def _cases(each: int) -> list[OpCase]:
    """For each opcode its first case, and every `each`-th one."""
    by_opcode: dict[Opcode, list[OpCase]] = {}
    for case in CASES:
        if not case.opcode.value.startswith(_OF_DEVICES):
            by_opcode.setdefault(case.opcode, []).append(case)
    return [case for cases in by_opcode.values() for k, case in enumerate(cases) if k % each == 0]


def _check_case(case: OpCase, seed: int) -> Partitioned | None:
    module = build_module(case)
    arguments = make_inputs(case)
    found = random_partition(module, random.Random(f"{case.id}-{seed}"))
    with np.errstate(all="ignore"):
        actual = run_partitioned(found, module, arguments)
        expected = expected_of(module, arguments)
    if case.opcode.value in _RANDOM:  # each run draws other numbers; that all devices have the same was checked
        return found
    if any(r.kind in ("all-reduce", "reduce-scatter") for r in found.records):
        for a, b in zip(actual, expected, strict=True):
            _assert_close(a, b)
    else:
        check_results(case, actual, expected)
    return found


def _assert_close(actual: Any, expected: Any) -> None:
    """Sums of the same terms in another order."""
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    if actual.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected)
        return
    coarse = actual.dtype.itemsize <= 2
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    tolerance = 2e-2 if coarse else 1e-4
    np.testing.assert_allclose(actual.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance)


def test_every_op_on_random_shardings() -> None:
    kinds: set[str] = set()
    for case in _cases(25):
        found = _check_case(case, 0)
        kinds |= {r.kind for r in found.records} if found else set()
    assert kinds >= {"all-gather", "all-reduce", "collective-permute", "computed whole"}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_all_cases_on_random_shardings(part: int) -> None:
    for case in _cases(2)[part::4]:
        _check_case(case, 1)


def test_random_programs_on_random_shardings() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        module = random_module(rng)
        arguments = random_arguments(module, seed, special=False)
        found = random_partition(module, rng)
        for a, b in zip(run_partitioned(found, module, arguments), expected_of(module, arguments), strict=True):
            _assert_close(a, b)


# Programs of JAX

PROGRAMS = sorted((Path(__file__).parents[1] / "partition_programs").glob("*.hlo"))


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda f: f.stem)
def test_programs_that_jax_lowers(file: Path) -> None:
    module = parse(file.read_text())
    with np.load(file.with_suffix(".npz")) as arrays:
        arguments = [arrays[k] for k in arrays.files if k.startswith("argument")]
        expected = [arrays[k] for k in arrays.files if k.startswith("result")]
    assert needs_partitioning(module) and partitions_of(module) == 8
    found = partition(module, 8)
    assert is_partitioned(found.module) and not needs_partitioning(found.module)
    for a, b in zip(run_partitioned(found, module, arguments), expected, strict=True):
        np.testing.assert_allclose(np.asarray(a, np.float64), b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "name, kinds",
    [
        ("data_parallel", {"all-reduce"}),
        ("attention", {"all-reduce"}),
        ("convolution", {"all-reduce"}),
        ("embedding", {"all-reduce"}),
        ("solve", set()),
        ("loop_rows", set()),
        ("draw", set()),
    ],
)
def test_what_is_sent(name: str, kinds: set[str]) -> None:
    """Programs that split by batches or heads gather nothing, and compute nothing whole."""
    module = parse((Path(__file__).parents[1] / "partition_programs" / f"{name}.hlo").read_text())
    assert {r.kind for r in partition(module, 8).records} == kinds


def test_compiled_on_devices() -> None:
    module = parse((Path(__file__).parents[1] / "partition_programs" / "tensor_parallel.hlo").read_text())
    with np.load(Path(__file__).parents[1] / "partition_programs" / "tensor_parallel.npz") as arrays:
        arguments = [arrays[k] for k in arrays.files if k.startswith("argument")]
        expected = [arrays[k] for k in arrays.files if k.startswith("result")]
    before = collectives.local_device_count()
    collectives.set_local_device_count(8)
    try:
        whole = WholeArrays(with_partitions(module), get_compiler("numba").compile)
        for a, b in zip(whole.execute(arguments), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    finally:
        collectives.set_local_device_count(before)


# Small programs, and what becomes of them


def _partitioned(body: str, count: int = 2, computations: str = "") -> Partitioned:
    return partition(parse(f"HloModule m\n{computations}\nENTRY main {{\n{body}\n}}"), count)


ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT sum = f32[] add(a, b) }"
ROWS, COLUMNS = "{devices=[2,1]<=[2]}", "{devices=[1,2]<=[2]}"


@pytest.mark.parametrize(
    "body, expected",
    [
        # contracted dimensions: terms of sums
        (
            f"x = f32[4,6] parameter(0), sharding={COLUMNS}\ny = f32[6,8] parameter(1), sharding={ROWS}\n"
            "ROOT r = f32[4,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={replicated}",
            ["all-reduce"],
        ),
        (
            f"x = f32[4,6] parameter(0), sharding={COLUMNS}\ny = f32[6,8] parameter(1), sharding={ROWS}\n"
            f"ROOT r = f32[4,8] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, sharding={ROWS}",
            ["reduce-scatter"],
        ),
        # rows and columns of a product
        (
            f"x = f32[4,6] parameter(0), sharding={ROWS}\ny = f32[6,8] parameter(1), sharding={{replicated}}\n"
            "ROOT r = f32[4,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            [],
        ),
        # from one dimension to the other
        (
            f"x = f32[4,6] parameter(0), sharding={ROWS}\nROOT r = f32[4,6] negate(x), sharding={COLUMNS}",
            ["all-to-all"],
        ),
        # other devices
        (
            "x = f32[4,6] parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}\n"
            "ROOT r = f32[4,6] negate(x), sharding={devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
            ["collective-permute"],
        ),
        (f"x = f32[4,6] parameter(0), sharding={ROWS}\nROOT r = f32[4,6] negate(x), sharding={{replicated}}",
         ["all-gather"]),
        # a sum of rows, a reversal of rows, a cut along another dimension
        (f"x = f32[4,6] parameter(0), sharding={ROWS}\nz = f32[] constant(0)\n"
         "ROOT r = f32[6] reduce(x, z), dimensions={0}, to_apply=add, sharding={replicated}", ["all-reduce"]),
        (f"x = f32[4,6] parameter(0), sharding={ROWS}\nROOT r = f32[4,6] reverse(x), dimensions={{0}}, "
         "sharding={replicated}", ["computed whole", "all-gather"]),
        (f"x = f32[4,6] parameter(0), sharding={ROWS}\nROOT r = f32[4,3] slice(x), slice={{[0:4], [1:4]}}", []),
        # dimensions that are merged and split
        (f"x = f32[4,6] parameter(0), sharding={ROWS}\nROOT r = f32[24] reshape(x)", []),
        (f"x = f32[4,6] parameter(0), sharding={ROWS}\nROOT r = f32[2,2,6] reshape(x)", []),
        # what does not divide is not cut
        ("x = f32[3] parameter(0), sharding={replicated}\n"
         'y = f32[3] custom-call(x), custom_call_target="Sharding", sharding={devices=[2]<=[2]}\n'
         "ROOT r = f32[3] negate(y)", []),
    ],
)  # fmt: skip
def test_collectives(body: str, expected: list[str]) -> None:
    found = _partitioned(body, 4 if "<=[4]" in body else 2, ADD)
    assert [r.kind for r in found.records] == expected, f"{found.records}\n{found.module}"


def test_all_reduces_are_joined() -> None:
    """Those that do not need each other's results: here two of three."""
    body = f"""
    x = f32[4,6] parameter(0), sharding={COLUMNS}
    y = f32[6,4] parameter(1), sharding={ROWS}
    a = f32[4,4] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, sharding={{replicated}}
    z = f32[] constant(0)
    b = f32[4] reduce(x, z), dimensions={{1}}, to_apply=add, sharding={{replicated}}
    e = f32[4,4] exponential(a)
    x2 = f32[4,6] dot(e, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, sharding={COLUMNS}
    c = f32[4] reduce(x2, z), dimensions={{1}}, to_apply=add, sharding={{replicated}}
    ROOT r = (f32[4,4], f32[4], f32[4]) tuple(a, b, c)"""
    text = f"HloModule m\n{ADD}\nENTRY main {{\n{body}\n}}"
    found = partition(parse(text), 2)
    joined = [i for i in found.module.instructions() if i.opcode is Opcode.ALL_REDUCE]
    assert [len(i.operands) for i in joined] == [2, 1] and len(found.records) == 3
    arguments = [np.arange(24, dtype=np.float32).reshape(d) / 24 for d in ((4, 6), (6, 4))]
    for a, b in zip(run_partitioned(found, parse(text), arguments), expected_of(parse(text), arguments), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_init_value_enters_once() -> None:
    body = """
    x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
    i = f32[] parameter(1)
    ROOT r = f32[] reduce(x, i), dimensions={0}, to_apply=add"""
    found = _partitioned(body, computations=ADD)
    parts = [[np.float32([1, 2]), np.float32(10)], [np.float32([3, 4]), np.float32(10)]]
    assert [float(each[0]) for each in run_on_devices(found.module, parts)] == [20, 20]


def test_propagation_goes_through_loops() -> None:
    text = f"""
    body {{
      s = (s32[], f32[8,4]) parameter(0)
      k = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      next = s32[] add(k, one)
      x = f32[8,4] get-tuple-element(s), index=1
      y = f32[8,4] tanh(x)
      ROOT t = (s32[], f32[8,4]) tuple(next, y)
    }}
    condition {{
      s = (s32[], f32[8,4]) parameter(0)
      k = s32[] get-tuple-element(s), index=0
      n = s32[] constant(3)
      ROOT c = pred[] compare(k, n), direction=LT
    }}
    ENTRY main {{
      p = f32[8,4] parameter(0), sharding={ROWS}
      z = s32[] constant(0)
      i = (s32[], f32[8,4]) tuple(z, p)
      w = (s32[], f32[8,4]) while(i), condition=condition, body=body
      ROOT r = f32[8,4] get-tuple-element(w), index=1
    }}"""
    found = partition(parse(f"HloModule m\n{text}"), 2)
    assert not found.records and str(found.result_shardings[0]) == ROWS
    assert "f32[8,4]" not in found.module.to_text()


def test_layouts_and_aliases() -> None:
    """Orders of dimensions and memory that is given to results hold for parts, if the parts are alike."""
    aliases = "{ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }"
    text = f"""HloModule m, num_partitions=2, input_output_alias={aliases}
    ENTRY main {{
      x = f32[4,6]{{0,1}} parameter(0), sharding={ROWS}
      y = f32[4,6]{{1,0}} parameter(1), sharding={ROWS}
      n = f32[4,6]{{0,1}} negate(x)
      m = f32[4,6]{{1,0}} add(y, n), sharding={{replicated}}
      ROOT r = (f32[4,6]{{0,1}}, f32[4,6]{{1,0}}) tuple(n, m)
    }}"""
    module = parse(text)
    found = partition(module, 2)
    assert [a.parameter for a in found.module.input_output_aliases] == [0]
    first = found.module.entry_parameter_shapes[0]
    assert first.dimensions == (2, 6) and first.array_layout.minor_to_major == (0, 1)
    x, y = (np.arange(24, dtype=np.float32).reshape(4, 6) * k for k in (1, 10))
    before = collectives.local_device_count()
    collectives.set_local_device_count(2)
    try:
        results = WholeArrays(module, get_compiler("numba").compile).execute([x, y])
    finally:
        collectives.set_local_device_count(before)
    assert (results[0] == -x).all() and (results[1] == y - x).all()


def test_a_shard_map_with_calls_and_loops_in_it() -> None:
    """Collectives and loops between the borders, also in computations that calls name, are copied as they are."""
    text = f"""HloModule m
    {ADD}
    summed {{
      x = f32[2] parameter(0)
      ROOT r = f32[2] all-reduce(x), channel_id=7, replica_groups={{{{0,1}}}}, use_global_device_ids=true, to_apply=add
    }}
    body {{
      s = (s32[], f32[2]) parameter(0)
      k = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      next = s32[] add(k, one)
      x = f32[2] get-tuple-element(s), index=1
      y = f32[2] call(x), to_apply=summed
      ROOT t = (s32[], f32[2]) tuple(next, y)
    }}
    condition {{
      s = (s32[], f32[2]) parameter(0)
      k = s32[] get-tuple-element(s), index=0
      n = s32[] constant(3)
      ROOT c = pred[] compare(k, n), direction=LT
    }}
    mapped {{
      w = f32[4] parameter(0)
      a = f32[4] custom-call(w), custom_call_target="Sharding", sharding={{devices=[2]<=[2]}}
      b = f32[2] custom-call(a), custom_call_target="SPMDFullToShardShape", sharding={{manual}}
      z = s32[] constant(0)
      i = (s32[], f32[2]) tuple(z, b)
      l = (s32[], f32[2]) while(i), condition=condition, body=body
      g = f32[2] get-tuple-element(l), index=1
      id = u32[] partition-id()
      f = f32[] convert(id)
      d = f32[2] broadcast(f), dimensions={{}}
      h = f32[2] add(g, d)
      o = f32[2] custom-call(h), custom_call_target="Sharding", sharding={{manual}}
      ROOT e = f32[4] custom-call(o), custom_call_target="SPMDShardToFullShape", sharding={{devices=[2]<=[2]}}
    }}
    ENTRY main {{
      p = f32[4] parameter(0)
      q = f32[4] negate(p)
      m = f32[4] call(q), to_apply=mapped
      z = f32[] constant(0)
      ROOT r = f32[] reduce(m, z), dimensions={{0}}, to_apply=add, sharding={{replicated}}
    }}"""
    found = partition(parse(text), 2)
    (result,) = run_partitioned(found, parse(text), [np.float32([1, 2, 3, 4])])
    # three times the sum of both halves, [4, 6] -> [8, 12] -> [16, 24], and the numbers of the devices, twice
    assert result == -(16 + 24) * 2 + 2
    channels = [i.attributes.channel_id for i in found.module.instructions() if i.opcode is Opcode.ALL_REDUCE]
    assert sorted(channels) == [7, 8]


@pytest.mark.parametrize("call", [True, False])
def test_whole_arrays_beside_values_of_one_device(call: bool) -> None:
    """Two shard_maps: the first one gives whole arrays and, for the second one, values of its inside, in one tuple."""
    first = """
      a = f32[2] custom-call(w), custom_call_target="SPMDFullToShardShape", sharding={manual}
      b = f32[2] multiply(a, a)
      c = f32[4] custom-call(b), custom_call_target="SPMDShardToFullShape", sharding={devices=[2]<=[2]}"""
    callee = f"mapped {{\n w = f32[4] parameter(0){first}\n ROOT t = (f32[4], f32[2]) tuple(c, a)\n}}" if call else ""
    text = f"""HloModule m
    {callee}
    ENTRY main {{
      w = f32[4] parameter(0), sharding={{devices=[2]<=[2]}}
      {"t = (f32[4], f32[2]) call(w), to_apply=mapped" if call else f"{first} t = (f32[4], f32[2]) tuple(c, a)"}
      squares = f32[4] get-tuple-element(t), index=0
      kept = f32[2] get-tuple-element(t), index=1
      n = f32[4] negate(squares)
      begin = f32[2] custom-call(n), custom_call_target="SPMDFullToShardShape", sharding={{manual}}
      y = f32[2] add(begin, kept)
      ROOT r = f32[4] custom-call(y), custom_call_target="SPMDShardToFullShape", sharding={{devices=[2]<=[2]}}
    }}"""
    (result,) = run_partitioned(partition(parse(text), 2), parse(text), [np.float32([1, 2, 3, 4])])
    assert result.tolist() == [0, -2, -6, -12]


def test_what_acts_runs_on_device_0() -> None:
    body = """
    x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
    c = () custom-call(x), custom_call_target="test.seen", custom_call_has_side_effect=true
    ROOT r = f32[4] negate(x)"""
    seen: list[Any] = []
    custom_calls.register_custom_call("test.seen", lambda x: seen.append(x.tolist()) or ())
    try:
        run_on_devices(_partitioned(body).module, [[np.float32([1, 2])], [np.float32([3, 4])]])
    finally:
        custom_calls.unregister_custom_call("test.seen")
    assert seen == [[1, 2, 3, 4]]


def test_own_arrays_pass_through() -> None:
    """Arguments and results that are one device's own, as residuals of a shard_map are."""
    body = """
    x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
    own = f32[3] parameter(1), sharding={manual}
    p = u32[] partition-id()
    f = f32[] convert(p)
    b = f32[3] broadcast(f), dimensions={}
    s = f32[3] add(own, b)
    n = f32[4] negate(x)
    ROOT r = (f32[4], f32[3]) tuple(n, s)"""
    found = _partitioned(body)
    assert [str(s) for s in found.parameter_shardings] == ["{devices=[2]<=[2]}", "{manual}"]
    assert [str(s) for s in found.result_shardings] == ["{devices=[2]<=[2]}", "{manual}"]
    zeros = np.zeros(3, np.float32)
    results = run_on_devices(found.module, [[np.float32([1, 2]), zeros], [np.float32([3, 4]), zeros]])
    assert [r[1].tolist() for r in results] == [[0, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize(
    "body, count, kind, message",
    [
        (f"ROOT x = f32[3,6] parameter(0), sharding={ROWS}", 2, UnsupportedError, "3 elements, which 2 devices"),
        (f"ROOT x = f32[6] parameter(0), sharding={ROWS}", 2, ShardingError, "2 dimensions, and this one has 1"),
        (f"ROOT x = f32[4,6] parameter(0), sharding={ROWS}", 4, UnsupportedError, "each sharding must name all"),
        ("x = f32[12] parameter(0), sharding={devices=[2,3]<=[6] last_tile_dim_replicate}\n"
         "ROOT y = f32[12] negate(x), sharding={devices=[3,2]<=[6] last_tile_dim_replicate}", 6, UnsupportedError,
         "do not fit together"),
        ("ROOT x = f32[4] parameter(0), sharding={maximal device=1}", 2, None, ""),
        ("ROOT x = f32[4] parameter(0), sharding={unknown}", 2, UnsupportedError, "another partitioner"),
        ("ROOT x = f32[4] parameter(0), sharding={devices=[2,2]<=[4] last_tile_dims={manual}}", 4, UnsupportedError,
         "a part of the mesh"),
        ("t = token[] after-all()\nROOT x = (f32[4], token[]) infeed(t)", 2, UnsupportedError, "one device"),
    ],
)  # fmt: skip
def test_refused(body: str, count: int, kind: type[Exception] | None, message: str) -> None:
    if kind is None:
        assert _partitioned(body, count).parameter_shardings == (HloSharding.replicate(),)
        return
    with pytest.raises(kind, match=message):
        _partitioned(body, count)


def test_refuses_to_partition_twice() -> None:
    found = _partitioned(f"ROOT x = f32[4,6] parameter(0), sharding={ROWS}")
    with pytest.raises(UnsupportedError, match="already"):
        partition(found.module, 2)


def test_refuses_replicas() -> None:
    module = dataclasses.replace(parse("HloModule m\nENTRY main {\nROOT x = f32[4] parameter(0)\n}"), replica_count=2)
    with pytest.raises(UnsupportedError, match="2 replicas"):
        partition(module, 2)


def test_the_pass_leaves_others_alone() -> None:
    text = f"HloModule m\nENTRY main {{\nROOT x = f32[4,6] parameter(0), sharding={ROWS}\n}}"
    assert Partition()(parse(text)) is not None
    module = parse(text)
    assert Partition()(module) is module, "its header does not say that there are two"
    again = Partition()(with_partitions(module))
    assert again.entry.parameters[0].shape.dimensions == (2, 6) and Partition()(again) is again


# Shardings, and the mesh

TEXTS = {
    "{replicated}": None,
    "{manual}": None,
    "{maximal device=3}": None,
    "{devices=[2,1]0,1}": "{devices=[2,1]<=[2]}",
    "{devices=[2,1,2]<=[4] last_tile_dim_replicate}": None,
    "{devices=[2,1,2]1,0,3,2 last_tile_dim_replicate}": "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
    "{devices=[2,2]<=[2,2]T(1,0)}": None,
    "{devices=[1,1,4]<=[4] last_tile_dim_replicate}": "{replicated}",
    "{devices=[4]0,2,3,1}": None,
    "{devices=[4,2]<=[2,2,2]T(2,0,1)}": "{devices=[4,2]<=[4,2]T(1,0)}",
    "{devices=[2,1,2,2]<=[8] last_tile_dims={replicated, manual}}": None,
    "{devices=[2,1,2]<=[4] last_tile_dims={replicated}}": "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
    "{{replicated}, {devices=[2]<=[2]}}": None,
    "{{replicated}, /*index=1*/{manual}}": "{{replicated}, {manual}}",
    "{replicated metadata={op_name='f'}}": "{replicated}",
}


@pytest.mark.parametrize("text", TEXTS)
def test_text(text: str) -> None:
    sharding = HloSharding.parse(text)
    assert sharding.to_text() == (TEXTS[text] or text)
    assert HloSharding.parse(sharding.to_text()) == sharding


@pytest.mark.parametrize(
    "text, kind",
    [
        ("", ShardingError), ("{", ShardingError), ("{replicated", ShardingError), ("{devices=[2]0}", ShardingError),
        ("{devices=[2]0,0}", ShardingError), ("{devices=[0]<=[0]}", ShardingError),
        ("{devices=[2]<=[2]T(1)}", ShardingError), ("{devices=[99999999,99999]<=[1]}", ShardingError),
        ("{devices=[2]<=[2]} x", ShardingError), ("{devices=[2]<=[2] last_tile_dims={other}}", ShardingError),
        ("{unknown}", UnsupportedError), ("{unreduced}", UnsupportedError),
        ("{devices=[2]<=[2] last_tile_dims={unreduced}}", UnsupportedError),
    ],
)  # fmt: skip
def test_text_refused(text: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        HloSharding.parse(text)


def test_parts_are_a_partition() -> None:
    """Parts of sizes that do not divide: ceil(size / parts) elements each, the last ones fewer."""
    sharding = HloSharding.from_tiles((4, 2))
    for dimensions in ((7, 3), (8, 2), (3, 1), (0, 5)):
        found = np.zeros(dimensions, int)
        for device in range(8):
            found[sharding.part(device, dimensions)] += 1
        assert (found == 1).all()
    with pytest.raises(ShardingError, match="no part"):
        HloSharding.maximal(1).part(0, (2,))


def test_shard_shape() -> None:
    assert str(HloSharding.from_tiles((2, 3)).shard_shape(Shape.parse("f32[4,6]"))) == "f32[2,2]"
    with pytest.raises(UnsupportedError, match="dimension 1"):
        HloSharding.from_tiles((2, 3)).shard_shape(Shape.parse("f32[4,5]"))


def _specs(mesh: DeviceMesh, rank: int) -> list[Any]:
    """All specs of arrays of this rank: each axis cuts a dimension or none, in any order."""
    found = {}
    for places in itertools.product(range(-1, rank), repeat=len(mesh.sizes)):
        for order in itertools.permutations(range(len(mesh.sizes))):
            spec = tuple(tuple(a for a in order if places[a] == d) for d in range(rank))
            found[spec] = None
    return list(found)


@pytest.mark.parametrize("sizes, order", [((2, 2, 2), None), ((2, 3), (4, 2, 0, 1, 5, 3))])
def test_specs_and_shardings(sizes: tuple[int, ...], order: tuple[int, ...] | None) -> None:
    count = math.prod(sizes)
    mesh = DeviceMesh(sizes, order or tuple(range(count)))
    for spec in _specs(mesh, 2):
        sharding = mesh.sharding(spec)
        assert HloSharding.parse(sharding.to_text()) == sharding
        again = mesh_of([sharding], count)
        assert again.sharding(again.spec(sharding, 2)) == sharding
        if order is None:
            assert mesh.spec(sharding, 2) == spec


def test_every_resharding() -> None:
    """From each sharding of a matrix on 2 x 2 and 2 x 3 devices to each other one."""
    for sizes in ((2, 2), (2, 3)):
        count = math.prod(sizes)
        mesh = DeviceMesh(sizes, tuple(range(count)))
        whole = np.arange(12 * 12, dtype=np.float32).reshape(12, 12)
        specs = _specs(mesh, 2)
        for source, target in itertools.product(specs, specs):
            given = mesh.sharding(source)
            x = hlo.make_parameter(0, given.shard_shape(Shape.parse("f32[12,12]")))
            root = reshard(Collectives(mesh), None, x, source, target, Cause(x))
            module = dataclasses.replace(
                hlo.make_module("m", hlo.make_computation("main", root, [x])), num_partitions=count
            )
            parts = run_on_devices(module, [[cut(whole, given, k)] for k in range(count)])
            found = put_together([p[0] for p in parts], mesh.sharding(target), whole.shape)
            assert (found == whole).all(), f"{given} to {mesh.sharding(target)}"


def test_put_together_can_fail() -> None:
    with pytest.raises(AssertionError, match="device 1 differs"):
        put_together([np.zeros(2), np.ones(2)], HloSharding.replicate(), (2,))
