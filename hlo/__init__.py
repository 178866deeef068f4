"""hloom.hlo: the IR and all that needs only the IR. It runs with NumPy alone."""

from __future__ import annotations

from .attributes import (
    ComparisonDirection,
    ComparisonType,
    ConvolutionDimensionNumbers,
    FusionKind,
    RandomAlgorithm,
)
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
    ExecutionError,
    HloError,
    HloParseError,
    ShapeError,
    UnsupportedElementTypeError,
    UnsupportedError,
    VerificationError,
)
from .evaluator import evaluate, evaluate_computation
from .ir import HloComputation, HloInstruction, HloModule, InputOutputAlias, Metadata
from .layout import Layout, Tile
from .literal import Literal
from .opcode import Opcode
from .passes.pipeline import optimize
from .shape import Shape
from .text.parser import parse
from .verifier import verify

__all__ = [
    "BuildError",
    "ComparisonDirection",
    "ComparisonType",
    "Computation",
    "ComputationBuilder",
    "ComputationDataHandle",
    "ConvolutionDimensionNumbers",
    "ElementType",
    "ExecutionError",
    "FusionKind",
    "GlobalData",
    "HloComputation",
    "HloError",
    "HloInstruction",
    "HloModule",
    "HloParseError",
    "InputOutputAlias",
    "Layout",
    "Literal",
    "LocalClient",
    "Metadata",
    "Opcode",
    "Padding",
    "PaddingConfig",
    "PaddingConfigDimension",
    "RandomAlgorithm",
    "Shape",
    "ShapeError",
    "Tile",
    "UnsupportedElementTypeError",
    "UnsupportedError",
    "VerificationError",
    "element_type_of",
    "evaluate",
    "evaluate_computation",
    "make_call",
    "make_computation",
    "make_constant",
    "make_get_tuple_element",
    "make_instruction",
    "make_module",
    "make_parameter",
    "make_tuple",
    "optimize",
    "parse",
    "verify",
]
