"""The devices: CPUs, in all processes that run a program together, as many in each process as the user requests.

One by default, however many cores the process has; kernels use the cores directly. `HLOOM_NUM_DEVICES=n` makes n, which
run programs on threads, as do JAX's names for it: `jax_num_cpu_devices`, and `XLA_FLAGS` with
``--xla_force_host_platform_device_count=n``. `hloom.distributed` adds the devices of other processes. All is settled
when a device is first asked for.

Names and semantics follow `jax.Device` and JAX's functions that list devices.
"""

from __future__ import annotations

import os
import platform as _machine
from typing import Any, Final

from ...hlo.collectives import World, set_local_device_count, world
from ...hlo.collectives.world import MAX_LOCAL_DEVICES
from ...hlo.errors import UnsupportedError
from ...hlo.support.lazy import lazy_pattern
from ..layers import LAYERS

MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")
"""Kinds of memory that a CPU has under JAX's names; all are the memory of the process."""


class _Known:
    """The devices of a world, as objects."""

    __slots__ = ("devices", "local", "process_count", "process_index", "world")

    def __init__(self, world: World) -> None:
        self.world = world
        owners = [(process, k) for process, count in enumerate(world.device_counts()) for k in range(count)]
        self.devices = [_device(number, *owner) for number, owner in enumerate(owners)]
        self.local = [d for d in self.devices if d.process_index == world.process_index]
        self.process_count = world.process_count
        self.process_index = world.process_index


_known: _Known | None = None
_asked: int | None = None
"""The number of devices that a setting asked for."""
SEVERAL: list[bool] = []
"""Not empty once there are several devices."""


def _all() -> _Known:
    global _known
    if _known is None or _known.world is not world():
        settle()
        _known = _Known(world())
        if len(_known.devices) > 1:
            SEVERAL[:] = [True]
            LAYERS.turn_on("places")
    return _known


def settle() -> None:
    """Give the world the number of devices that JAX's settings ask for, where HLOOM_NUM_DEVICES does not."""
    if _known is None and (count := _count_asked()) is not None:
        set_local_device_count(count)


def set_device_count(count: int) -> None:
    """How many devices this process has; -1: as the environment says. RuntimeError if a device has been asked for."""
    global _asked
    if isinstance(count, bool) or count != int(count) or (count != -1 and count < 1):
        raise ValueError(f"jax_num_cpu_devices must be at least 1 (or -1: as the environment says), not {count!r}")
    if _known is not None and int(count) != (len(_known.local) if count != -1 else -1):
        raise RuntimeError(
            "jax_num_cpu_devices config should be updated before backends are initialized i.e. before any device is "
            "asked for."
        )
    _asked = None if count == -1 else int(count)


_FLAG = lazy_pattern(r"--xla_force_host_platform_device_count=(\S+)")


def _count_asked() -> int | None:
    if _asked is not None:
        return _asked
    if os.environ.get("HLOOM_NUM_DEVICES"):
        return None
    flags = _FLAG.findall(os.environ.get("XLA_FLAGS", ""))
    for name, text in (
        ("JAX_NUM_CPU_DEVICES", os.environ.get("JAX_NUM_CPU_DEVICES")),
        ("XLA_FLAGS: --xla_force_host_platform_device_count", flags[-1] if flags else None),
    ):
        if text and text != "-1":
            if not text.isdecimal() or not 1 <= int(text) <= MAX_LOCAL_DEVICES:
                raise ValueError(f"{name} must be a number of devices, 1 to {MAX_LOCAL_DEVICES}, not {text!r}")
            return int(text)
    return None


class Client:
    """The owner of devices: JAX's `device.client`."""

    platform = "cpu"
    platform_version: str = f"hloom on {_machine.machine()}"
    runtime_type = "hloom"

    def devices(self) -> list[CpuDevice]:
        """All devices."""
        return list(_all().devices)

    def local_devices(self) -> list[CpuDevice]:
        """The devices of this process."""
        return list(_all().local)

    def device_count(self) -> int:
        return len(_all().devices)

    def local_device_count(self) -> int:
        return len(_all().local)

    def process_index(self) -> int:
        return _all().process_index

    def __repr__(self) -> str:
        return "<hloom client of platform cpu>"


class Memory:
    """A memory of a device, by its kind."""

    __slots__ = ("_device", "kind")

    def __init__(self, device: CpuDevice, kind: str) -> None:
        self._device = device
        self.kind: str = kind

    platform = "cpu"

    @property
    def process_index(self) -> int:
        return self._device.process_index

    def attached_devices(self) -> list[CpuDevice]:
        """The devices that use it."""
        return [self._device]

    addressable_by_devices = attached_devices

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Memory) and (other._device, other.kind) == (self._device, self.kind)

    def __hash__(self) -> int:
        return hash((self._device, self.kind))

    def __repr__(self) -> str:
        return f"CpuMemory(kind={self.kind!r}, device={self._device!r})"

    def __str__(self) -> str:
        return f"CPU_{self._device.id}_{self.kind}"


class CpuDevice:
    """A CPU, as far as programs know: it runs one program at a time. `hloom.devices()` lists them.

    >>> hloom.devices()[0]
    CpuDevice(id=0)
    """

    __slots__ = ("id", "local_hardware_id", "process_index")

    id: int
    local_hardware_id: int
    """Its number among the devices of its process."""
    process_index: int
    platform = "cpu"
    device_kind = "cpu"

    @property
    def host_id(self) -> int:
        return self.process_index

    task_id = host_id

    @property
    def client(self) -> Client:
        return _CLIENT

    def addressable_memories(self) -> list[Memory]:
        """Its memories. All are the memory of the process."""
        return [Memory(self, kind) for kind in MEMORY_KINDS]

    def memory(self, kind: str) -> Memory:
        """The memory of a kind; ValueError for a kind that it does not have."""
        if kind not in MEMORY_KINDS:
            known = ", ".join(MEMORY_KINDS)
            raise ValueError(f"Could not find memory addressable by device cpu: memory kind {kind!r}; it has {known}")
        return Memory(self, kind)

    def default_memory(self) -> Memory:
        return Memory(self, "device")

    def memory_stats(self) -> None:
        """None, as JAX gives for CPUs: the operating system counts memory."""

    def __reduce__(self) -> Any:
        return _device, (self.id, self.process_index, self.local_hardware_id)

    def __copy__(self) -> CpuDevice:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CpuDevice:
        return self

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"

    def __str__(self) -> str:
        return f"cpu:{self.id}"


_DEVICES: dict[tuple[int, int, int], CpuDevice] = {}
"""Equal devices are the same object."""


def _device(number: int, process: int, local: int) -> CpuDevice:
    found = _DEVICES.get((number, process, local))
    if found is None:
        made = CpuDevice()
        made.id, made.process_index, made.local_hardware_id = number, process, local
        found = _DEVICES.setdefault((number, process, local), made)
    return found


def default_device() -> CpuDevice:
    """The device of arrays that have not been placed explicitly: the first device of this process."""
    return _all().local[0]


_CLIENT: Final = Client()
_PLATFORMS = ("cpu", "host")


def devices(backend: str | Client | None = None) -> list[CpuDevice]:
    """The devices of a platform, of all processes. RuntimeError for "gpu", "tpu" and others.

    >>> hloom.devices()[:1]
    [CpuDevice(id=0)]
    """
    check_platform(backend)
    return list(_all().devices)


def local_devices(
    process_index: int | None = None, backend: str | Client | None = None, host_id: int | None = None
) -> list[CpuDevice]:
    """The devices of one process: this one, if it is None. ValueError for a process that there is not.

    >>> hloom.local_devices()[:1]
    [CpuDevice(id=0)]
    """
    check_platform(backend)
    index = host_id if process_index is None else process_index
    known = _all()
    if index is None:
        return list(known.local)
    if index not in range(known.process_count):
        raise ValueError(f"Unknown process_index {index}: there are processes 0 to {known.process_count - 1}")
    return [d for d in known.devices if d.process_index == index]


def device_count(backend: str | Client | None = None) -> int:
    """The number of devices of all processes: 1, unless more were asked for. The CPU's cores are not devices; kernels
    use them directly.

    >>> hloom.device_count()
    1
    """
    check_platform(backend)
    return len(_all().devices)


def local_device_count(backend: str | Client | None = None) -> int:
    """The number of devices of this process: 1, unless more were asked for.

    >>> hloom.local_device_count()
    1
    """
    check_platform(backend)
    return len(_all().local)


def process_count(backend: str | Client | None = None) -> int:
    """The number of processes that run a program together: 1, unless `hloom.distributed.initialize` found more.

    >>> hloom.process_count()
    1
    """
    check_platform(backend)
    return _all().process_count


def process_index(backend: str | Client | None = None) -> int:
    """The number of this process among those that run a program together.

    >>> hloom.process_index()
    0
    """
    check_platform(backend)
    return _all().process_index


def process_indices(backend: str | Client | None = None) -> list[int]:
    """The numbers of all processes.

    >>> hloom.process_indices()
    [0]
    """
    check_platform(backend)
    return list(range(_all().process_count))


def host_count(backend: str | Client | None = None) -> int:
    """Another name of `process_count`, which JAX deprecates.

    >>> hloom.host_count()
    1
    """
    return process_count(backend)


def host_id(backend: str | Client | None = None) -> int:
    """Another name of `process_index`, which JAX deprecates.

    >>> hloom.host_id()
    0
    """
    return process_index(backend)


def host_ids(backend: str | Client | None = None) -> list[int]:
    """Another name of `process_indices`, which JAX deprecates.

    >>> hloom.host_ids()
    [0]
    """
    return process_indices(backend)


def default_backend() -> str:
    """The platform of the default device: "cpu". `hloom.config.hloom_backend` names the compiler.

    >>> hloom.default_backend()
    'cpu'
    """
    return "cpu"


def check_platform(backend: str | Client | None) -> None:
    """RuntimeError for a platform that there is not."""
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
    """`device` if it is a device; else ValueError or TypeError, which names `where` it was given."""
    if isinstance(device, CpuDevice):
        return device
    if isinstance(device, str):
        platform, _, number = device.partition(":")
        check_platform(platform)
        known = _all().devices
        if device in _PLATFORMS:
            return default_device()
        if number.isdecimal() and int(number) < len(known):
            return known[int(number)]
        raise ValueError(f"{where}: there are devices cpu:0 to cpu:{len(known) - 1}, not {device!r}")
    raise TypeError(f"{where}: expected a device (hloom.devices()[0]) or a sharding, not {device!r}")


def check_default_device(device: object, where: str) -> None:
    """UnsupportedError for a device that cannot be the default."""
    if check_device(device, where) is not default_device():
        raise UnsupportedError(
            f"{where}: arrays are made on {default_device()!r}; hloom.device_put(x, {device!r}) puts one elsewhere, "
            "and what is computed from it stays there"
        )


def environment_info(return_string: bool = False) -> str | None:
    """The versions of hloom, NumPy, Numba and Python, and the machine: for reports of errors. JAX's
    `print_environment_info`: printed, or returned as text.

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
    counts = device_count(), local_device_count()
    lines.append(f"device info: cpu-{counts[0]}, {counts[1]} local devices, {os.cpu_count()} cores")
    lines.append(f"process_count: {process_count()}")
    lines.append(f"platform: {_machine.uname()}")
    lines += [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith(("JAX_", "HLOOM_"))]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None
