"""The device: hloom runs on the CPU of this process, which is one device to programs, however many cores it has.

Names and meaning are those of `jax.Device` and of the functions that list devices, for one process with one CPU.
"""

from __future__ import annotations

import os
import platform as _machine
from typing import Any, Final

from ..hlo.errors import UnsupportedError

__all__ = [
    "CPU",
    "Client",
    "CpuDevice",
    "Memory",
    "check_device",
    "default_backend",
    "device_count",
    "devices",
    "host_count",
    "host_id",
    "host_ids",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
    "process_indices",
]

MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")
"""Kinds of memory that a CPU has under JAX's names; all are the memory of the process."""


class Client:
    """What owns devices: JAX's `device.client`."""

    platform = "cpu"
    platform_version = f"hloom on {_machine.machine()}"
    runtime_type = "hloom"

    def devices(self) -> list[CpuDevice]:
        """The one device."""
        return [CPU]

    local_devices = devices

    def device_count(self) -> int:
        return 1

    local_device_count = device_count

    def process_index(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "<hloom client of platform cpu>"


class Memory:
    """A memory of a device, by its kind."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    platform = "cpu"

    @property
    def process_index(self) -> int:
        return 0

    def attached_devices(self) -> list[CpuDevice]:
        """The devices that use it."""
        return [CPU]

    addressable_by_devices = attached_devices

    def __repr__(self) -> str:
        return f"CpuMemory(kind={self.kind!r}, device={CPU!r})"

    def __str__(self) -> str:
        return f"CPU_0_{self.kind}"


class CpuDevice:
    """The CPU. `hloom.devices()` lists it; there is one object of this class.

    >>> import hloom
    >>> hloom.devices()
    [CpuDevice(id=0)]
    """

    __slots__ = ()

    id = 0
    local_hardware_id = 0
    process_index = 0
    host_id = 0
    task_id = 0
    platform = "cpu"
    device_kind = "cpu"

    @property
    def client(self) -> Client:
        return _CLIENT

    def addressable_memories(self) -> list[Memory]:
        """Its memories. All are the memory of the process."""
        return list(_MEMORIES.values())

    def memory(self, kind: str) -> Memory:
        """The memory of a kind; ValueError for a kind that it does not have."""
        if kind not in _MEMORIES:
            known = ", ".join(_MEMORIES)
            raise ValueError(f"Could not find memory addressable by device cpu: memory kind {kind!r}; it has {known}")
        return _MEMORIES[kind]

    def default_memory(self) -> Memory:
        return _MEMORIES["device"]

    def memory_stats(self) -> None:
        """None, as JAX gives for CPUs: the operating system counts memory."""

    def __reduce__(self) -> str:
        return "CPU"

    def __copy__(self) -> CpuDevice:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CpuDevice:
        return self

    def __repr__(self) -> str:
        return "CpuDevice(id=0)"

    def __str__(self) -> str:
        return "cpu:0"


_CLIENT: Final = Client()
_MEMORIES: Final = {kind: Memory(kind) for kind in MEMORY_KINDS}
CPU: Final = CpuDevice()
"""The one device."""
_PLATFORMS = ("cpu", "host")


def devices(backend: str | Client | None = None) -> list[CpuDevice]:
    """The devices of a platform: one CPU. RuntimeError for "gpu", "tpu" and others.

    >>> import hloom
    >>> hloom.devices()
    [CpuDevice(id=0)]
    """
    _check_platform(backend)
    return [CPU]


def local_devices(
    process_index: int | None = None, backend: str | Client | None = None, host_id: int | None = None
) -> list[CpuDevice]:
    """The devices of one process: ValueError for a process other than 0.

    >>> import hloom
    >>> hloom.local_devices()
    [CpuDevice(id=0)]
    """
    _check_platform(backend)
    index = host_id if process_index is None else process_index
    if index is not None and index != 0:
        raise ValueError(f"Unknown process_index {index}: there is one process, 0")
    return [CPU]


def device_count(backend: str | Client | None = None) -> int:
    """The number of devices: 1. The CPU's cores are not devices; kernels use them by themselves.

    >>> import hloom
    >>> hloom.device_count()
    1
    """
    _check_platform(backend)
    return 1


def local_device_count(backend: str | Client | None = None) -> int:
    """The number of devices of this process: 1.

    >>> import hloom
    >>> hloom.local_device_count()
    1
    """
    _check_platform(backend)
    return 1


def process_count(backend: str | Client | None = None) -> int:
    """The number of processes that run a program together: 1.

    >>> import hloom
    >>> hloom.process_count()
    1
    """
    _check_platform(backend)
    return 1


def process_index(backend: str | Client | None = None) -> int:
    """The number of this process among those that run a program together: 0.

    >>> import hloom
    >>> hloom.process_index()
    0
    """
    _check_platform(backend)
    return 0


def process_indices(backend: str | Client | None = None) -> list[int]:
    """The numbers of all processes: [0].

    >>> import hloom
    >>> hloom.process_indices()
    [0]
    """
    _check_platform(backend)
    return [0]


def host_count(backend: str | Client | None = None) -> int:
    """Another name of `process_count`, which JAX deprecates.

    >>> import hloom
    >>> hloom.host_count()
    1
    """
    return process_count(backend)


def host_id(backend: str | Client | None = None) -> int:
    """Another name of `process_index`, which JAX deprecates.

    >>> import hloom
    >>> hloom.host_id()
    0
    """
    return process_index(backend)


def host_ids(backend: str | Client | None = None) -> list[int]:
    """Another name of `process_indices`, which JAX deprecates.

    >>> import hloom
    >>> hloom.host_ids()
    [0]
    """
    return process_indices(backend)


def default_backend() -> str:
    """The platform of the default device: "cpu". What compiles programs is named by `hloom.config.hloom_backend`.

    >>> import hloom
    >>> hloom.default_backend()
    'cpu'
    """
    return "cpu"


def _check_platform(backend: str | Client | None) -> None:
    if backend is None or isinstance(backend, Client):
        return
    if not isinstance(backend, str):
        raise TypeError(f"backend must be a platform's name or None, not {backend!r}")
    if backend.lower() not in _PLATFORMS:
        raise RuntimeError(
            f"Unknown backend: {backend!r} requested, but no platforms that are instances of {backend} are present. "
            "Platforms present are: cpu"
        )


def check_device(device: object, where: str) -> CpuDevice:
    """`device` if it is the CPU; else ValueError or TypeError, which names `where` it was given."""
    if isinstance(device, CpuDevice):
        return device
    if isinstance(device, str):
        _check_platform(device.partition(":")[0])
        if device in (*_PLATFORMS, "cpu:0"):
            return CPU
        raise ValueError(f"{where}: there is one device, cpu:0, not {device!r}")
    raise TypeError(f"{where}: expected a device (hloom.devices()[0]) or a sharding, not {device!r}")


def check_count(count: int) -> None:
    """UnsupportedError for more than one device."""
    if count != 1:
        raise UnsupportedError(
            f"{count} CPU devices were asked for: hloom runs programs on one device, and uses its cores from within. "
            "Programs over several devices come later."
        )


def environment_info(return_string: bool = False) -> str | None:
    """The versions of hloom, NumPy, Numba and Python, and the machine: for reports of errors. JAX's
    `print_environment_info`: printed, or returned as text.

    >>> import hloom
    >>> hloom.print_environment_info(return_string=True).split(":")[0]
    'hloom'
    """
    from importlib.metadata import PackageNotFoundError, version  # slow to import, and only needed here

    lines = []
    for package in ("hloom", "numpy", "numba", "llvmlite", "scipy"):
        try:
            lines.append(f"{package + ':':<10}{version(package)}")
        except PackageNotFoundError:
            lines.append(f"{package + ':':<10}not installed")
    lines.append(f"{'python:':<10}{_machine.python_implementation()} {_machine.python_version()}")
    lines.append(f"device info: cpu-1, 1 local devices, {os.cpu_count()} cores")
    lines.append("process_count: 1")
    lines.append(f"platform: {_machine.uname()}")
    lines += [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith(("JAX_", "HLOOM_"))]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None
