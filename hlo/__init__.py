"""hloom.hlo: the IR and all that needs only the IR. It runs with NumPy alone.

Names are loaded when first used: a process that never parses text does not load the parser.
"""

from __future__ import annotations

from importlib import import_module
from types import FunctionType as _FunctionType
from typing import TYPE_CHECKING, Any

from .library import part_above as _part_above

if "." not in __name__:  # Python would load a second copy of each module, next to the one in `hloom`
    raise ImportError("hlo is a part of hloom: import hloom.hlo")

if TYPE_CHECKING:
    from .analyses.cluster import Cluster, Link, Prediction, Scaling, scaling
    from .analyses.communication import Communication, communication_analysis
    from .backend import optimize
    from .builder import (
        make_call,
        make_computation,
        make_constant,
        make_get_tuple_element,
        make_instruction,
        make_module,
        make_parameter,
        make_tuple,
    )
    from .client import (
        BuildError,
        Computation,
        ComputationBuilder,
        ComputationDataHandle,
        GlobalData,
        LocalClient,
        Padding,
        PaddingConfig,
        PaddingConfigDimension,
    )
    from .element_type import ElementType, element_type_of
    from .errors import (
        CollectiveError,
        ExecutionError,
        HloError,
        HloParseError,
        ShapeError,
        UnsupportedElementTypeError,
        UnsupportedError,
        VerificationError,
    )
    from .evaluator import evaluate, evaluate_computation
    from .evaluator.devices import evaluate_on_devices
    from .index_util import linear_index, multi_index
    from .ir import HloComputation, HloInstruction, HloModule, InputOutputAlias, Metadata
    from .layout import Layout, PaddingValue, Tile
    from .literal import Literal
    from .opcode import Opcode
    from .ops.elementwise import ComparisonDirection, ComparisonType
    from .ops.random import RandomAlgorithm
    from .ops.structure import FusionKind
    from .passes.partition import Partitioned, is_partitioned, needs_partitioning, partition, partitions_of
    from .physical_array import from_physical, to_physical
    from .pictures.layout_figure import layout_svg
    from .pictures.layout_text import layout_text
    from .pictures.scaling_figure import scaling_svg
    from .shape import Shape
    from .sharding import HloSharding, ShardingError
    from .target import CpuTarget, MemorySpace, Target, TargetOptionError
    from .targets import target_named
    from .text.parser import parse
    from .tpu_target import TpuTarget
    from .verifier import verify
    from .window import ConvolutionDimensionNumbers

_NAMES = {
    **dict.fromkeys(("Cluster", "Link", "Prediction", "Scaling", "scaling"), ".analyses.cluster"),
    **dict.fromkeys(("Communication", "communication_analysis"), ".analyses.communication"),
    **dict.fromkeys(("ComparisonDirection", "ComparisonType"), ".ops.elementwise"),
    "ConvolutionDimensionNumbers": ".window",
    "FusionKind": ".ops.structure",
    "RandomAlgorithm": ".ops.random",
    **dict.fromkeys(
        (
            "make_call",
            "make_computation",
            "make_constant",
            "make_get_tuple_element",
            "make_instruction",
            "make_module",
            "make_parameter",
            "make_tuple",
        ),
        ".builder",
    ),
    **dict.fromkeys(
        (
            "BuildError",
            "Computation",
            "ComputationBuilder",
            "ComputationDataHandle",
            "GlobalData",
            "LocalClient",
            "Padding",
            "PaddingConfig",
            "PaddingConfigDimension",
        ),
        ".client",
    ),
    **dict.fromkeys(("ElementType", "element_type_of"), ".element_type"),
    **dict.fromkeys(
        (
            "CollectiveError",
            "ExecutionError",
            "HloError",
            "HloParseError",
            "ShapeError",
            "UnsupportedElementTypeError",
            "UnsupportedError",
            "VerificationError",
        ),
        ".errors",
    ),
    **dict.fromkeys(("evaluate", "evaluate_computation"), ".evaluator"),
    "evaluate_on_devices": ".evaluator.devices",
    **dict.fromkeys(("HloComputation", "HloInstruction", "HloModule", "InputOutputAlias", "Metadata"), ".ir"),
    **dict.fromkeys(("linear_index", "multi_index"), ".index_util"),
    **dict.fromkeys(("Layout", "PaddingValue", "Tile"), ".layout"),
    "Literal": ".literal",
    "Opcode": ".opcode",
    "optimize": ".backend",
    **dict.fromkeys(
        ("Partitioned", "is_partitioned", "needs_partitioning", "partition", "partitions_of"), ".passes.partition"
    ),
    **dict.fromkeys(("HloSharding", "ShardingError"), ".sharding"),
    **dict.fromkeys(("from_physical", "to_physical"), ".physical_array"),
    "layout_svg": ".pictures.layout_figure",
    "layout_text": ".pictures.layout_text",
    "Shape": ".shape",
    **dict.fromkeys(("CpuTarget", "MemorySpace", "Target", "TargetOptionError"), ".target"),
    "scaling_svg": ".pictures.scaling_figure",
    "target_named": ".targets",
    "parse": ".text.parser",
    "TpuTarget": ".tpu_target",
    "verify": ".verifier",
}

__all__ = [
    "BuildError",
    "Cluster",
    "CollectiveError",
    "Communication",
    "ComparisonDirection",
    "ComparisonType",
    "Computation",
    "ComputationBuilder",
    "ComputationDataHandle",
    "ConvolutionDimensionNumbers",
    "CpuTarget",
    "ElementType",
    "ExecutionError",
    "FusionKind",
    "GlobalData",
    "HloComputation",
    "HloError",
    "HloInstruction",
    "HloModule",
    "HloParseError",
    "HloSharding",
    "InputOutputAlias",
    "Layout",
    "Link",
    "Literal",
    "LocalClient",
    "MemorySpace",
    "Metadata",
    "Opcode",
    "Padding",
    "PaddingConfig",
    "PaddingConfigDimension",
    "PaddingValue",
    "Partitioned",
    "Prediction",
    "RandomAlgorithm",
    "Scaling",
    "Shape",
    "ShapeError",
    "ShardingError",
    "Target",
    "TargetOptionError",
    "Tile",
    "TpuTarget",
    "UnsupportedElementTypeError",
    "UnsupportedError",
    "VerificationError",
    "communication_analysis",
    "element_type_of",
    "evaluate",
    "evaluate_computation",
    "evaluate_on_devices",
    "from_physical",
    "is_partitioned",
    "layout_svg",
    "layout_text",
    "linear_index",
    "make_call",
    "make_computation",
    "make_constant",
    "make_get_tuple_element",
    "make_instruction",
    "make_module",
    "make_parameter",
    "make_tuple",
    "multi_index",
    "needs_partitioning",
    "optimize",
    "parse",
    "partition",
    "partitions_of",
    "scaling",
    "scaling_svg",
    "target_named",
    "to_physical",
    "verify",
]


if not TYPE_CHECKING:  # to type checkers, a name that is not imported above is an error

    def __getattr__(name: str) -> Any:
        namespaces = _part_above("namespaces")
        if name not in _NAMES:
            error = namespaces.missing(__name__, name)
            try:
                raise error
            except AttributeError:
                namespaces.hide(error)
                raise
        found = getattr(import_module(_NAMES[name], __name__), name)
        if isinstance(found, _FunctionType):  # classes keep their home, where their source is
            found = namespaces.published(found, name, __name__)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
