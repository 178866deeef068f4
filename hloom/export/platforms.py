"""The platforms of exported functions: the default, and the choice among several."""

from __future__ import annotations

import numpy as np

from ..tracer import ops
from ..tracer.arrays.array import as_value
from ..tracer.control_flow.platforms import PLATFORM, lowering_platforms, platform_index
from ..tracer.core import Value
from .checks import DisabledSafetyCheck
from .record import ExportedFunction


def default_export_platform() -> str:
    """The default platform of exported programs.

    >>> hloom.export.default_export_platform()
    'cpu'
    """
    return PLATFORM


def numbers_of_platforms(exported: ExportedFunction) -> list[int]:
    """For each platform of the calling program, its number among the platforms of the function. ValueError if the
    function is not for it."""
    found = []
    for platform in lowering_platforms():
        if platform in exported.platforms:
            found.append(exported.platforms.index(platform))
        elif DisabledSafetyCheck.platform() in exported.disabled_safety_checks:
            found.append(0)
        else:
            raise ValueError(
                f"Function '{exported.fun_name}' was exported for platforms '{exported.platforms}' but it is used on "
                f"'{lowering_platforms()}'."
            )
    return found


def index_for(exported: ExportedFunction) -> Value:
    """The number of the platform, int32, that the program of a function of several platforms takes."""
    numbers = numbers_of_platforms(exported)
    if len({*numbers}) == 1:
        return as_value(np.int32(numbers[0]))
    index = platform_index()
    if numbers == [*range(len(numbers))]:
        return index
    return ops.reshape(ops.read_block(as_value(np.array(numbers, np.int32)), [index], (1,)), ())
