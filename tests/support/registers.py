"""Machines whose kernels of products differ: by their vector registers."""

from __future__ import annotations

from dataclasses import replace

from hloom.numba_backend.machine import Machine, this_machine

NARROW: Machine = replace(this_machine(), registers=16, register_bytes=min(32, this_machine().register_bytes))
"""This machine, with 16 registers of 32 bytes at most."""
WIDE: Machine = replace(this_machine(), registers=32, register_bytes=64)
"""This machine, with 32 registers of 64 bytes. Any processor runs the kernels: LLVM makes several vectors of one."""
