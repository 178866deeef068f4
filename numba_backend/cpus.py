"""The CPUs of this process: their number and kind."""

from __future__ import annotations

from ..hlo.system import system

available_cpus = system.available_cpus
"""How many CPUs this process may use."""
cpu_description = system.cpu_description
"""The CPU's instruction sets, in the system's words; None where the system does not tell."""
