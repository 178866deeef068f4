"""Arrays in files: specs, and with the package tensorstore writing and reading."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.experimental.array_serialization import serialization, tensorstore_impl
from hloom.experimental.layout import Format, Layout

pytestmark = pytest.mark.usefixtures("evaluator")
SPEC = tensorstore_impl.get_tensorstore_spec


@pytest.mark.parametrize(
    ("path", "options", "kvstore"),
    [
        ("/tmp/a/b/", {"ocdbt": False}, {"driver": "file", "path": "/tmp/a/b"}),
        ("/tmp/a/b", {}, {"driver": "ocdbt", "base": {"driver": "file", "path": "/tmp/a"}, "path": "b"}),
        ("/tmp/a/b", {"ocdbt": False, "process_idx": 3}, {"driver": "file", "path": "/tmp/a/process_3/b"}),
        ("gs://bucket/a/b", {"ocdbt": False}, {"driver": "gcs", "bucket": "bucket", "path": "a/b"}),
        (
            "s3://bucket/a/b",
            {},
            {"driver": "ocdbt", "base": {"driver": "s3", "bucket": "bucket", "path": "a"}, "path": "b"},
        ),
    ],
)
def test_specs(path: str, options: dict[str, Any], kvstore: dict[str, Any]) -> None:
    """Those of JAX 0.10.2."""
    assert SPEC(path, **options) == {"driver": "zarr3", "kvstore": kvstore}


def test_specs_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="should be absolute"):
        SPEC("a/b")
    with pytest.raises(ValueError, match="needs the bucket"):
        SPEC("gs://bucket", ocdbt=False)
    with pytest.raises(ValueError, match="Unsupported driver"):
        SPEC("/tmp/a", driver="n5", arr=jnp.ones(2))


def test_metadata_and_chunks() -> None:
    found = SPEC("/tmp/a", arr=jnp.ones((2, 0), jnp.bfloat16))["metadata"]
    assert (found["shape"], found["data_type"]) == ((2, 0), "bfloat16")
    assert found["chunk_grid"]["configuration"] == {"chunk_shape": [2, 1]}
    assert SPEC("/tmp/a", arr=jnp.ones((2, 3)), driver="zarr")["metadata"]["chunks"] == [2, 3]
    big = tensorstore_impl._chunk((2**20, 6, 7**3), 4)
    assert np.prod(big) * 4 <= 1.1 * 2**31 and all(n % c == 0 for n, c in zip((2**20, 6, 7**3), big, strict=True))


def test_kinds_of_specs() -> None:
    remote = serialization.is_remote_storage
    assert remote("s3://b/x") and not remote("/tmp/x") and not remote({"driver": "file"})
    assert remote({"driver": "zarr", "kvstore": {"driver": "ocdbt", "base": {"driver": "gcs"}}})
    assert serialization.get_tensorstore_spec("/tmp/x") == SPEC("/tmp/x", ocdbt=False, driver="zarr")


def test_memory_is_asked_for_and_given_back() -> None:
    async def run() -> list[str]:
        limiter, seen = tensorstore_impl.LimitInFlightBytes(10), []

        async def use(name: str, count: int) -> None:
            await limiter.wait_for_bytes(count)
            seen.append(name)
            await asyncio.sleep(0.001)
            await limiter.release_bytes(count)
            seen.append(f"-{name}")

        await asyncio.gather(use("a", 6), use("b", 6), use("c", 4))
        await use("d", 100)
        return seen

    seen = asyncio.run(run())
    assert seen.index("b") > seen.index("-a") and seen.index("c") < seen.index("-a") and seen[-1] == "-d"


def test_one_class_of_formats() -> None:
    place = hloom.devices()[0]
    form = Format(Layout((0, 1)), hloom.sharding.SingleDeviceSharding(place))
    assert hloom.device_put(jnp.ones((2, 3)), form).format.sharding == form.sharding


class TestFiles:
    @pytest.fixture(autouse=True)
    def _needs(self) -> None:
        pytest.importorskip("tensorstore")

    def test_a_manager_writes_and_reads(self, tmp_path: Path) -> None:
        arrays = [jnp.arange(12.0).reshape(3, 4), jnp.ones((), jnp.int32), jnp.arange(5, dtype=jnp.bfloat16)]
        paths = [str(tmp_path / name) for name in "abc"]
        done: list[int] = []
        manager = serialization.GlobalAsyncCheckpointManager()
        manager.serialize_with_paths(arrays, paths, on_commit_callback=lambda: done.append(1))
        manager.wait_until_finished()
        assert done == [1]
        places = [a.sharding for a in arrays]
        for a, b in zip(arrays, manager.deserialize_with_paths(places, paths), strict=True):
            np.testing.assert_array_equal(a, b)
            assert (a.dtype, a.sharding) == (b.dtype, b.sharding)
        (wide,) = manager.deserialize_with_paths(places[:1], paths[:1], [(4, 4)], [jnp.float16])
        np.testing.assert_array_equal(wide, np.vstack([arrays[0], np.zeros((1, 4))]))
        assert wide.dtype == jnp.float16

    def test_errors_of_the_thread_and_of_types(self, tmp_path: Path) -> None:
        manager = serialization.GlobalAsyncCheckpointManager()
        manager.serialize_with_paths([jnp.ones(2)], [str(tmp_path / "a")], on_commit_callback=lambda: 1 / 0)  # type: ignore[arg-type,return-value]
        with pytest.raises(ZeroDivisionError):
            manager.wait_until_finished()
        manager.check_for_errors()
        with pytest.raises(TypeError, match="sharding passed to deserialization"):
            manager.deserialize_with_paths([None], [str(tmp_path / "a")])  # type: ignore[list-item]

    def test_lists_at_once(self, tmp_path: Path) -> None:
        specs = [SPEC(tmp_path / name) for name in "ab"]
        arrays = [jnp.ones((2, 2)), jnp.arange(3)]
        serialization.run_serialization(arrays, specs)
        found = serialization.run_deserialization([a.sharding for a in arrays], specs, concurrent_gb=1)
        assert [f.tolist() for f in found] == [a.tolist() for a in arrays]
