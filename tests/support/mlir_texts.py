"""A text of each operation of StableHLO and CHLO, in the form in which MLIR prints it: `data/mlir/operations.txt`."""

from __future__ import annotations

import re
from pathlib import Path

ARGUMENTS = {
    "%x": "tensor<4x8xf32>", "%y": "tensor<4x8xf32>", "%n": "tensor<4x8xi32>", "%m": "tensor<4x8xi32>",
    "%p": "tensor<4x8xi1>", "%s": "tensor<f32>", "%i": "tensor<i32>", "%c": "tensor<4x8xcomplex<f32>>",
    "%v": "tensor<8xf32>", "%w": "tensor<4xf32>", "%d": "tensor<2xi32>", "%k": "tensor<i1>", "%u": "tensor<2xui64>",
    "%a": "tensor<4x4xf32>", "%img": "tensor<1x8x8x3xf32>", "%ker": "tensor<3x3x3x4xf32>", "%t": "!stablehlo.token",
    "%tup": "tuple<tensor<f32>, tensor<i32>>", "%three": "tensor<2x4x8xf32>", "%idx": "tensor<3x1xi32>",
    "%q": "tensor<4x!quant.uniform<i8:f32, 5.000000e-01:-3>>", "%pads": "tensor<2x2xi64>",
    "%updates": "tensor<3x4x8xf32>", "%fut": "!stablehlo.future<tensor<4x8xf32>>",
}  # fmt: skip
"""The values that the texts use, with their types."""

_FILE = Path(__file__).parents[1] / "data" / "mlir" / "operations.txt"


def _name(text: str) -> str:
    found = re.search(r"= \"?([\w.\-]+)", text)
    assert found is not None
    return found[1]


LINES = {_name(text): text.strip() for text in _FILE.read_text().split("\n\n")}
"""The texts by the names of their operations."""


def module_with(text: str) -> str:
    """A module with one function, in which the operation is, with the arguments that it uses."""
    used = {name: kind for name, kind in ARGUMENTS.items() if re.search(rf"{name}\b", text)}
    arguments = ", ".join(f"{name}: {kind}" for name, kind in used.items())
    function = "  func.func private @f(tensor<4x8xf32>) -> tensor<4x8xf32>\n" if "@f" in text else ""
    body = text.replace("\n", "\n    ")
    return f"module {{\n{function}  func.func @main({arguments}) {{\n    {body}\n    return\n  }}\n}}\n"
