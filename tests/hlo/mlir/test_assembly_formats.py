"""Every operation of StableHLO and CHLO is read and written, in its own form and in the generic form."""

from __future__ import annotations

from pathlib import Path

import pytest
from hloom.hlo import HloParseError, UnsupportedError
from hloom.hlo.mlir.tree import Operation
from hloom.hlo.stablehlo.assembly_formats import ASSEMBLY_FORMATS
from hloom.hlo.stablehlo.text import read, write

from support.mlir_texts import LINES, module_with

SHARDY = Path(__file__).parents[2] / "data" / "mlir" / "shardy.mlir"
UNKNOWN_TO_JAX = (
    "stablehlo.collective_reduce", "stablehlo.async_start", "stablehlo.async_done",
    "stablehlo.cross-replica-sum", "stablehlo.uniform_quantize", "stablehlo.uniform_dequantize",
)  # fmt: skip
"""Operations that JAX 0.10 does not know, or whose types it does not load."""


def operation_of(text: str) -> Operation:
    """The operation of a text, read."""
    return read(module_with(text)).regions[0].block.operations[-1].regions[0].block.operations[0]


def test_the_table_has_a_text_of_every_operation() -> None:
    ours = {name for name in ASSEMBLY_FORMATS if name.startswith(("stablehlo.", "chlo."))}
    assert set(LINES) == ours - {"stablehlo.return"}


@pytest.mark.parametrize("name", LINES)
def test_an_operation_is_written_as_it_was_read(name: str) -> None:
    text = module_with(LINES[name])
    assert operation_of(LINES[name]).name == name
    assert write(read(text)) == text


@pytest.mark.parametrize("name", LINES)
def test_the_generic_form_says_the_same(name: str) -> None:
    text = module_with(LINES[name])
    generic = write(read(text), generic=True)
    assert "= stablehlo." not in generic and "= chlo." not in generic
    assert write(read(generic)) == text


@pytest.mark.parametrize("name", [name for name in LINES if name not in UNKNOWN_TO_JAX])
def test_jaxs_printer_writes_the_same(name: str) -> None:
    """MLIR reads the text of each operation, and prints it as it is here."""
    mlir = pytest.importorskip("jax._src.interpreters.mlir")
    ir = pytest.importorskip("jaxlib.mlir.ir")
    with mlir.make_ir_context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        text = module_with(LINES[name])
        printed = str(ir.Module.parse(text))
        assert write(read(printed)) == printed
        assert str(ir.Module.parse(write(read(text), generic=True))) == printed


@pytest.mark.parametrize("name", LINES)
def test_a_shortened_text_is_refused_with_a_place(name: str) -> None:
    """No part of a text alone is a program, except where only attributes are missing."""
    words = LINES[name].split(" ")
    for count in range(1, len(words)):
        try:
            operation_of(" ".join(words[:count]))
        except HloParseError as error:
            assert error.line >= 3 and error.file == "<mlir>"
        except UnsupportedError as error:
            assert str(error).startswith("<mlir>:")


def test_operations_of_shardy() -> None:
    text = SHARDY.read_text()
    assert write(read(text)) == text
    generic = write(read(text), generic=True)
    assert "= sdy." not in generic and write(read(generic)) == text


def test_jaxs_printer_writes_operations_of_shardy_so() -> None:
    mlir = pytest.importorskip("jax._src.interpreters.mlir")
    ir = pytest.importorskip("jaxlib.mlir.ir")
    with mlir.make_ir_context(), ir.Location.unknown():
        assert str(ir.Module.parse(SHARDY.read_text())) == SHARDY.read_text()
