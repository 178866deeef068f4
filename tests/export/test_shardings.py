"""Shardings in exported programs: Shardy's attributes, and XLA's words where a program has no such form.

The checks need four devices, so they run in a process that has them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hloom.hlo.stablehlo.text import write

import hloom
from hloom import export, lax
from hloom.sharding import AbstractMesh, NamedSharding
from hloom.sharding import PartitionSpec as P

MESH, OTHER = AbstractMesh((2, 2), ("x", "y")), AbstractMesh((4,), ("z",))
MESHES = (MESH, OTHER)
SHAPE = (8, 8)


def struct(mesh: AbstractMesh, *spec: Any) -> hloom.ShapeDtypeStruct:
    return hloom.ShapeDtypeStruct(SHAPE, np.float32, sharding=NamedSharding(mesh, P(*spec)))


def function(a: Any, b: Any) -> Any:
    first = lax.with_sharding_constraint(a + b, NamedSharding(MESH, P(None, ("x", "y"))))
    return lax.with_sharding_constraint(2 * first, NamedSharding(OTHER, P(P.UNCONSTRAINED, "z")))


def text_of(made: Any) -> list[str]:
    return [line.strip() for line in write(made.mlir_module(serialized=False)).splitlines()]


def check_meshes_arguments_results_and_constraints() -> None:
    f = hloom.jit(function, out_shardings=NamedSharding(MESH, P("y")))
    made = export.export(f)(struct(MESH, "x"), struct(OTHER))
    lines = text_of(made)
    assert lines[1:3] == ['sdy.mesh @mesh = <["x"=2, "y"=2]>', 'sdy.mesh @mesh_0 = <["z"=4]>']
    assert "mhlo.num_partitions = 4" in lines[0]
    assert '%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}' in lines[3]
    assert "%arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh_0, [{}, {}]>}" in lines[3]
    assert '-> (tensor<8x8xf32> {jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{"y"}' in lines[3]
    stated = [line.partition(" <")[2].partition(" :")[0] for line in lines if "sdy.sharding_constraint" in line]
    assert stated == ['@mesh, [{}, {"x", "y"}]>', '@mesh_0, [{?}, {"z"}]>']
    read = export.deserialize(made.serialize())
    assert text_of(read) == lines and read.nr_devices == 4


def check_a_called_program_has_its_meshes_among_those_of_the_caller() -> None:
    inner = export.export(hloom.jit(function))(struct(MESH, "x"), struct(MESH))
    inner = export.deserialize(inner.serialize())
    lines = text_of(export.export(hloom.jit(lambda a: inner.call(a, a)))(struct(OTHER, "z")))
    assert sum(line.startswith("sdy.mesh ") for line in lines) == 2
    assert not any("mhlo.sharding" in line or "hloom.sdy" in line for line in lines)
    stated = {line.partition(" <@")[2].partition(", ")[2].partition(">")[0] for line in lines if "_constraint" in line}
    assert stated == {'[{"x"}, {}]', "[{}, {}]", '[{}, {"x", "y"}]', '[{?}, {"z"}]'}


def check_a_called_program_for_any_size_keeps_its_meshes() -> None:
    def divided(x: Any, mesh: AbstractMesh, *spec: Any) -> Any:
        return lax.with_sharding_constraint(x + 1, NamedSharding(mesh, P(*spec)))

    (rows,) = export.symbolic_shape("4*b")
    size = [hloom.ShapeDtypeStruct((rows,), np.float32, sharding=NamedSharding(m, P(m.axis_names[0]))) for m in MESHES]
    inner = export.export(hloom.jit(lambda x: divided(x, OTHER, "z")))(size[1])
    made = export.export(hloom.jit(lambda x: inner.call(divided(x, MESH, ("x", "y")))))(size[0])
    lines = text_of(made)
    assert [line for line in lines if line.startswith("sdy.mesh ")] == [
        'sdy.mesh @mesh = <["x"=2, "y"=2]>', 'sdy.mesh @mesh_1 = <["z"=4]>'
    ]  # fmt: skip
    stated = [line.partition(" <")[2].partition(" :")[0] for line in lines if "sdy.sharding_constraint" in line]
    assert stated == ['@mesh, [{"x", "y"}]>', '@mesh_1, [{"z"}]>']
    mesh = hloom.make_mesh((2, 2), ("x", "y"), axis_types=MESH.axis_types)
    x = hloom.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P("x")))
    np.testing.assert_array_equal(export.deserialize(made.serialize()).call(x), np.arange(8) + 2)


def check_a_shard_map_has_the_words_of_xla() -> None:
    mapped = hloom.shard_map(lambda x: 2 * x, mesh=hloom.make_mesh((4,), ("z",)), in_specs=P("z"), out_specs=P("z"))
    lines = text_of(export.export(hloom.jit(mapped))(struct(OTHER, "z")))
    assert not any("sdy." in line for line in lines) and any("mhlo.sharding" in line for line in lines)


CHECKS = {name: check for name, check in globals().items() if name.startswith("check_")}


@pytest.mark.parametrize("name", CHECKS)
def test_with_four_devices(name: str) -> None:
    command = [sys.executable, __file__, name]
    ran = subprocess.run(command, env={**os.environ, "HLOOM_NUM_DEVICES": "4"}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_files_run_in_jax() -> None:
    """JAX runs the program of four devices that a process of four devices has written."""
    pytest.importorskip("jax")
    pytest.importorskip("flatbuffers", reason="JAX reads files with the package flatbuffers")
    given = {"HLOOM_NUM_DEVICES": "4", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    command = [sys.executable, __file__, "in_jax"]
    ran = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def in_jax() -> None:
    import jax

    blob = export.export(hloom.jit(function))(struct(MESH, "x"), struct(MESH)).serialize()
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    x = np.arange(64, dtype=np.float32).reshape(SHAPE)
    place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    read = jax.export.deserialize(blob)
    assert b"sharding_constraint" in blob
    np.testing.assert_array_equal(read.call(*[jax.device_put(x, place)] * 2), 4 * x)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
