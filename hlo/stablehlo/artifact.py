"""A program in HLO from StableHLO's portable bytecode, and to it.

jax.export, PyTorch/XLA and TensorFlow store programs in this form. `vhlo.py` has the bytes, `to_hlo.py` and
`from_hlo.py` the meaning.
"""

from __future__ import annotations

from ..ir import HloModule
from .from_hlo import stablehlo_of
from .to_hlo import hlo_of
from .vhlo import read_bytecode, write_bytecode


def deserialize(data: bytes | bytearray | memoryview) -> HloModule:
    """The program in a portable artifact of StableHLO 0.9 to 1.20.

    BytecodeError (an HloParseError), with the offset, if the bytes are damaged. UnsupportedError, with the name, for
    what HLO or this version cannot express, e.g. sizes that are known only when the program runs.
    """
    return hlo_of(read_bytecode(data))


def serialize(module: HloModule, version: str = "") -> bytes:
    """`module` as a portable artifact for a version of StableHLO, e.g. "1.8.0". "": the oldest stable version that has
    all that the program uses, so that most readers can read it.

    UnsupportedError, with the name, for an operation that StableHLO's portable form lacks, or that the version lacks.
    """
    return write_bytecode(stablehlo_of(module), version)
