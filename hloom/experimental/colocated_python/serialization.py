"""Lists of devices. Functions run in the process that calls them, so nothing else is sent."""

from ...tracer.sharding.devices import CpuDevice

__all__ = ["DeviceList"]


class DeviceList(tuple[CpuDevice, ...]):
    """Devices, in order: DeviceList((device, ...))."""

    __slots__ = ()
