"""`hloom layout FILE`: the memory of each buffer of a module, as written or compiled for a target."""

from __future__ import annotations

import json
from argparse import Namespace

from ..hlo.analyses.layout_report import LayoutReport, report_as_written, report_of_program, with_entry_on_device
from ..hlo.buffers.assignment import assign_buffers
from ..hlo.ir import HloModule
from ..hlo.pictures.report_text import report_text
from ..hlo.target import Target
from ..numba_backend.fused_computations import FusedComputations
from ..numba_backend.pipeline import pipeline
from .files import read_module, target_of
from .outcome import UsageError

_MOST = 20
"""Buffers that are listed without --all."""


def module_text(options: Namespace) -> str:
    """The report on the module in the file: tables, or JSON."""
    module = read_module(options.subject).module
    if options.target in (None, "as-written"):
        if options.on_device:
            raise UsageError("--on-device needs a --target: the layouts of its arrays are meant")
        report = report_as_written(module)
    else:
        target = target_of(options)
        report = _compiled(with_entry_on_device(module, target) if options.on_device else module, target)
    if options.json:
        return json.dumps(report.to_json(), indent=2) + "\n"
    return report_text(report, None if options.all else _MOST)


def _compiled(module: HloModule, target: Target) -> LayoutReport:
    """The report on the program that the backend would run for the target; no kernel is compiled."""
    bodies = FusedComputations()
    optimized, _ = pipeline(target, bodies).run(module)
    assignment = assign_buffers(optimized, bodies.can_share, fast_memory=target.fast_memory)
    return report_of_program(assignment, target)
