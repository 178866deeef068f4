"""Python functions and objects that live where their arguments are, and other names about where programs run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.errors import UnsupportedError
from hloom.experimental import colocated_python as cp
from hloom.experimental import compute_on, custom_partitioning, pallas, shard_map
from hloom.extend import backend

pytestmark = pytest.mark.usefixtures("evaluator")
X = jnp.arange(3.0)


def test_a_function_runs_as_python() -> None:
    seen = []

    @cp.colocated_python
    def total(tree: Any) -> Any:
        """Adds."""
        seen.append(float(tree["a"][0]))  # the values are there
        return {"sum": tree["a"] + tree["b"]}

    assert total({"a": X, "b": X})["sum"].tolist() == [0, 2, 4]
    assert seen == [0.0] and total.__doc__ == "Adds."
    with pytest.raises(ValueError, match=r"only supports hloom\.Array as input and output, but got <class 'float'>"):
        total({"a": 1.0, "b": X})
    with pytest.raises(ValueError, match="only supports"):
        cp.colocated_python(lambda x: 1.0)(X)
    with pytest.raises(ValueError, match="only supports"):
        hloom.jit(total)({"a": X, "b": X})


def test_facts_about_calls() -> None:
    kind = hloom.ShapeDtypeStruct((3,), jnp.float32)
    double = cp.colocated_python(lambda x: 2 * x)
    known = double.specialize(in_specs=((kind,), {}), out_specs_fn=lambda x: x)
    assert known(X).tolist() == [0, 2, 4]
    with pytest.raises(TypeError, match="the arguments are"):
        known(jnp.ones(2))
    with pytest.raises(TypeError, match="the results are"):
        double.specialize(out_specs_fn=lambda x: hloom.ShapeDtypeStruct((4,), jnp.float32))(X)
    with pytest.raises(ValueError, match="in_specs already specified"):
        known.specialize(in_specs=((kind,), {}))
    none = cp.colocated_python(lambda: jnp.ones(2))
    with pytest.raises(ValueError, match="No devices found"):
        none()
    assert none.specialize(devices=hloom.devices()[:1])().tolist() == [1, 1]


def test_an_object_is_made_at_its_first_call() -> None:
    made = []

    @cp.colocated_python_class
    class Counter:
        """Counts."""

        def __init__(self, start: int) -> None:
            made.append(start)
            self.value = start

        def add(self, x: Any) -> Any:
            self.value = self.value + x
            return self.value

    counter = Counter(5)
    assert made == [] and Counter.__name__ == "Counter" and Counter.__doc__ == "Counts."
    assert counter.add(jnp.array(1)) == 6 and counter.add(jnp.array(2)) == 8 and made == [5]


def test_devices_are_those_of_the_host() -> None:
    devices = hloom.devices()
    assert cp.colocated_cpu_devices(tuple(devices)) == devices
    mesh = hloom.make_mesh((1,), ("x",))
    assert cp.colocated_cpu_devices(mesh) is mesh
    assert cp.serialization.DeviceList(tuple(devices)) == tuple(devices)
    assert backend.get_backend() is backend.get_backend("cpu") is backend.backends()["cpu"] is devices[0].client
    assert backend.get_default_device() == devices[0] and backend.backend_xla_version() is None
    with pytest.raises(RuntimeError):
        backend.get_backend("tpu")
    with hloom.default_device(devices[0]):
        assert backend.get_default_device() == devices[0]


def test_a_cache_that_is_cleared_with_the_librarys() -> None:
    class Cache:
        cleared = 0

        def cache_clear(self) -> None:
            self.cleared += 1

    cache = Cache()
    backend.register_backend_cache(cache, "a test")
    hloom.clear_caches()
    backend.clear_backends()
    assert cache.cleared == 2


def test_programs_that_say_where_they_run() -> None:
    with compute_on.compute_on("device_host"):
        y = X + 1
    assert y.tolist() == [1, 2, 3]
    f = compute_on.compute_on("device_host")(hloom.jit(lambda x: x * 2))
    assert f(X).tolist() == [0, 2, 4]
    assert compute_on.compute_on2(compute_type="device", out_memory_spaces=None)(abs)(-2) == 2
    with pytest.raises(ValueError, match="Invalid compute type"), compute_on.compute_on("gpu"):
        pass
    with pytest.raises(TypeError, match="must be a string"), compute_on.compute_on(1):  # type: ignore[arg-type]
        pass
    mesh = hloom.make_mesh((1,), ("i",))
    mapped = shard_map.shard_map(lambda x: hloom.lax.psum(x, "i"), mesh, hloom.P("i"), hloom.P(), check_rep=False)
    assert mapped(X).tolist() == [0, 1, 2]


def test_custom_partitioning() -> None:
    @custom_partitioning.custom_partitioning
    def double(x: Any) -> Any:
        return 2 * x

    rule = double.def_partition(partition=lambda *a: a, sharding_rule="i -> i", need_replication_factors=("i",))
    assert rule is double.partition and double.__name__ == "double"
    assert double(X).tolist() == hloom.jit(double)(X).tolist() == [0, 2, 4]
    assert hloom.vmap(double)(X).tolist() == [0, 2, 4]
    power = custom_partitioning.custom_partitioning(lambda x, n: x**n, static_argnums=(1,))
    assert power(X, 2).tolist() == [0, 1, 4]


@pytest.mark.parametrize(
    "use",
    [
        lambda: pallas.semaphore_read(None),
        lambda: pallas.ops.tpu.splash_attention.splash_attention_mask.CausalMask((2, 2)),
        lambda: hloom.extend.ifrt_programs.ifrt_programs.make_plugin_program(""),
    ],
)
def test_names_that_are_imported_and_not_written(use: Any) -> None:
    with pytest.raises(UnsupportedError, match="is not written yet: it "):
        use()


def test_small_functions_beside_them() -> None:
    assert not isinstance(1, hloom.export.Exported) and not hasattr(hloom.export, "no_such_name")
    assert (pallas.cdiv(7, 2), pallas.align_to(7, 4), pallas.next_power_of_2(9)) == (4, 8, 16)
    assert (pallas.next_power_of_2(0), pallas.strides_from_shape(()), pallas.strides_from_shape((2, 3))) == (
        1, (), (3, 1),
    )  # fmt: skip
    with pytest.raises(ValueError, match="non-negative"):
        pallas.next_power_of_2(-1)


def test_the_mesh_of_the_thread() -> None:
    from hloom.interpreters import pxla

    assert pxla.thread_resources.env.physical_mesh.empty
    mesh = hloom.make_mesh((1,), ("x",))
    with mesh:
        assert pxla.thread_resources.env.physical_mesh == mesh
    np.testing.assert_array_equal(X, [0, 1, 2])
