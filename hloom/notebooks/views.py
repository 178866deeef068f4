"""The table of views: which function shows which class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..hlo.backend import MemoryAnalysis
from ..hlo.ir import HloModule
from ..hlo.kernel_texts import KernelTexts
from ..hlo.layout import Layout
from ..hlo.passes.module_diff import ModuleDiff, ModuleDiffs
from ..hlo.passes.record import PassRecords
from ..hlo.shape import Shape
from ..hlo.timeline.summary import Summary
from ..jaxpr.nodes import ClosedJaxpr, Jaxpr
from ..tracer.arrays.layouts import Format
from ..tracer.arrays.layouts import Layout as UserLayout
from ..tracer.sharding.mesh import AbstractMesh, Mesh
from ..tracer.sharding.shardings import Sharding
from ..tracer.stages import Compiled, Lowered, Traced
from ..tracer.trees.treedef import PyTreeDef
from . import layouts, places, programs, trees
from .page import Html, page, table

VIEWS: dict[type, Callable[[Any], Iterator[Html]]] = {
    AbstractMesh: places.mesh_view,
    ClosedJaxpr: programs.jaxpr_view,
    Compiled: programs.compiled_view,
    Format: layouts.format_view,
    HloModule: programs.module_view,
    Jaxpr: programs.jaxpr_view,
    KernelTexts: programs.kernels_view,
    Layout: layouts.layout_view,
    Lowered: programs.lowered_view,
    MemoryAnalysis: programs.memory_view,
    Mesh: places.mesh_view,
    ModuleDiff: programs.diff_view,
    ModuleDiffs: programs.diffs_view,
    PassRecords: programs.passes_view,
    PyTreeDef: trees.tree_view,
    Shape: layouts.shape_view,
    Summary: programs.summary_view,
    Sharding: places.sharding_view,
    Traced: programs.traced_view,
    UserLayout: layouts.user_layout_view,
}
"""By class, also for the classes below it. What is not here has a method `table`, and is that table."""


def html_of(value: Any) -> str:
    """The value as a notebook shows it: a style sheet and one element of HTML, without scripts."""
    view = next((VIEWS[kind] for kind in type(value).__mro__ if kind in VIEWS), None)
    return page([table(value.table())] if view is None else view(value))
