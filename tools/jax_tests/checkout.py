"""Cuts tests of one version, and the helpers that they import, out of a git checkout."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

HELPERS = (
    *("test_util", "public_test_util", "test_loader", "test_warning_util", "hypothesis_test_util"),
    *("internal_test_util", "lax_reference"),
)
"""Modules of `jax._src` that belong to the tests: these run as they are. All others are stand-ins."""

PUBLIC_HELPERS = ("jax/experimental/sparse/test_util.py", "jax/_src/pallas/pallas_test_util.py")
"""Modules of the tests in other packages: these run as they are, too."""

MODULES = "modules.txt"
"""The file with the names of all modules of `jax._src`."""

NOT_FRONT_END = (
    # of one device or compiler that this is not
    "*gpu*", "*tpu*", "cuda*", "cudnn*", "*mosaic*", "*pallas*", "*triton*", "rocm*", "magma*", "scaled_matmul*",
    "fused_attention*", "*multiprocess*", "*colocated*", "pgle*", "mosaic*",
    # of JAX's own implementation or repository
    "*filecheck*", "documentation_coverage*", "package_structure*", "local_wheel*", "cache_key*", "lru_cache*",
    "compilation_cache*", "xla_bridge*", "jax_to_ir*", "*back_compat*", "roofline*", "source_mapper*", "sourcemap*",
    "*profiler*", "version_test*", "util_test*", "pretty_printer*", "mock_gpu*", "path_test*",
    "garbage_collection*", "hardware_utils*", "config_test*", "logging*", "deprecation*", "warnings_util*", "jax_jit*",
    "xla_transform*", "custom_partitioning*", "clear_backends*", "multibackend*", "transfer_guard*", "memories*",
    "layout_test*", "api_util*", "jaxpr_util*", "blocked_sampler*", "absl_cpp*", "lazy_loader*",
    "hypothesis_test*", "core_test*",
    "buffer_callback*", "pytorch_interop*", "string_array*", "shape_poly*", "export*", "harness*",
    "ragged_collective*", "overlap*", "hijax*", "lax_numpy_hijax*", "qdwh*", "svd_test*", "eigh_test*",
)  # fmt: skip
"""Files that `front_end` leaves out, as patterns."""


def cut_folder(repository: Path, ref: str, inside: str, folder: Path) -> Path:
    """The folder with what is `inside` a repository at `ref`; made unless it is there.

    repository: a git repository that has `ref`; or the unpacked source distribution, which is the result.
    Raises subprocess.CalledProcessError if the repository has not that version.
    """
    if (repository / inside).is_dir() and not (repository / ".git").is_dir() and not (repository / "HEAD").is_file():
        return repository.resolve()
    place = folder / ref.replace("/", "-")
    if not place.is_dir():
        _unpack(repository, ref, [inside], place)
    return place


def cut(repository: Path, ref: str, folder: Path) -> Path:
    """The folder with the tests of JAX at `ref`; made unless it is there.

    repository: a git repository that has the version `ref`, a tag, branch or hash.
    Raises subprocess.CalledProcessError if it has not.
    """
    place = folder / ref.replace("/", "-")
    if not (place / "tests").is_dir():
        paths = ["tests", *_present(repository, ref)]
        _unpack(repository, ref, paths, place)
        (place / MODULES).write_text("\n".join(_modules(repository, ref)))
    return place


def _unpack(repository: Path, ref: str, paths: list[str], place: Path) -> None:
    packed = subprocess.run(["git", "-C", repository, "archive", ref, *paths], check=True, capture_output=True)
    place.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(place, filter="data")


def _modules(repository: Path, ref: str) -> list[str]:
    command = ["git", "-C", repository, "ls-tree", "-r", "-t", "--name-only", ref, "jax/_src/"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return [".".join(Path(name).with_suffix("").parts) for name in listed if Path(name).suffix in ("", ".py")]


def _present(repository: Path, ref: str) -> list[str]:
    """The files and folders of the helpers that this version has."""
    command = ["git", "-C", repository, "ls-tree", "--name-only", ref, "jax/_src/", *PUBLIC_HELPERS]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return [name for name in listed if name in PUBLIC_HELPERS or Path(name).stem in HELPERS]


def front_end(place: Path) -> list[Path]:
    """The test files of the public interface: JAX's functions, transformations, arrays, and errors."""
    files = sorted((place / "tests").glob("*_test.py"))
    return [f for f in files if not any(f.match(pattern) for pattern in NOT_FRONT_END)]
