"""`hloom machine`: the machine that programs are compiled for, as decisions of the backend see it, and its speed."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict

from .outcome import FINE


def execute(options: Namespace) -> int:
    """Print the fields of the machine and the measured rates, in bytes and operations a second."""
    from ..numba_backend.machine import this_machine
    from ..numba_backend.machine_speed import machine_speed

    machine, speed = this_machine(), machine_speed(options.measure)
    if options.json:
        print(json.dumps({**asdict(machine), **asdict(speed)}, indent=1))
        return FINE
    print(machine.to_text())
    print(f"{'memory':16} {speed.bytes_per_second / 1e9:.1f} GB/s on {speed.threads} threads")
    for element, flops in speed.flops_per_second.items():
        print(f"{'products of ' + element:16} {flops / 1e9:.1f} GFLOP/s on {speed.threads} threads")
    return FINE
