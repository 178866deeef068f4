"""How each opcode's attributes are written: one writer an opcode that has any. `attribute_reader.py` reads them back.

Source: XLA's HloInstruction::ExtraAttributesToString.
"""

from __future__ import annotations

from ..opcode import Opcode
from . import attribute_writer_arrays, attribute_writer_structure
from .attribute_text import Writer

WRITERS: dict[Opcode, Writer] = {**attribute_writer_arrays.WRITERS, **attribute_writer_structure.WRITERS}
