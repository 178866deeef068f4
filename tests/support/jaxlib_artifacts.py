"""jaxlib as the oracle for StableHLO's portable artifacts."""

from __future__ import annotations

from jax._src.interpreters.mlir import make_ir_context
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _stablehlo


def artifact(text: str, version: str) -> bytes:
    """The portable artifact of a program's text."""
    with make_ir_context() as context:
        empty = _stablehlo.serialize_portable_artifact(ir.Module.parse("module {}"), version)
        _stablehlo.deserialize_portable_artifact(context, empty)  # loads the dialect of quantized types
        module = ir.Module.parse(text)
        return bytes(_stablehlo.serialize_portable_artifact(module, version))


def mixed_artifact(text: str, version: str) -> bytes:
    """The portable artifact of a program with operations and attributes of Shardy, as jax.export writes it."""
    with make_ir_context():
        return bytes(_jax.mlir.serialize_portable_artifact(ir.Module.parse(text), version, True))


def generic_text(data: bytes, *, places: bool = False) -> str:
    """The program of a portable artifact in MLIR's generic form."""
    with make_ir_context() as context:
        module = _stablehlo.deserialize_portable_artifact(context, data)
        return str(module.operation.get_asm(enable_debug_info=places, print_generic_op_form=True))
