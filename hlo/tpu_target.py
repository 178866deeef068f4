"""The TPU's layouts: a pure function of element type and dimensions.

A vector register of a TPU holds 8 rows (sublanes) of 128 words (lanes) of 32 bits; arrays are in memory in tiles of
that form. Elements of less than 32 bits are packed along the second most minor dimension, so a word holds elements of
one column. All formats below follow from two numbers: the `packing` (elements in a word) and the `rows` of a tile.

Sources: XLA's page "Tiled layout", section "Examples of tiling formats" (8x128; the compact second minor 2x128 and
4x128; 16, 8 and 1 bit), and modules that XLA for the TPU printed. Such modules are in tests of XLA
(memory_space_propagation_test: `s32[5]{0:T(128)}`, `s32[]{:T(128)}`, `s4[8,32768,1,256]{3,1,0,2:T(8,128)(8,1)E(4)}`,
`pred[]{:T(512)}`; while_loop_unroller_test: `u32[256]{0:T(256)}`, `s8[1,32,2048]{2,1,0:T(8,128)(4,1)}`;
layout_assignment_test: `f32[384]{0:T(512)}`), in JAX's book on scaling (`bf16[8192]{0:T(1024)(128)(2,1)}`) and in
error messages of programs that ran out of memory (`bf16[4,512,512,64]{3,0,2,1:T(4,128)(2,1)}`).
"""

from __future__ import annotations

from .element_type import ElementType
from .layout import Layout, Tile
from .shape import Shape
from .support.records import dataclass
from .target import MemorySpace, Target, TargetOptionError

LANES = 128
"""Words in a row of a vector register."""
SUBLANES = 8
"""Rows of a vector register."""
WORD_BITS = 32

VMEM = 1
"""The number of the memory space of vector memory, `S(1)`."""


@dataclass(frozen=True, slots=True)
class TpuTarget(Target):
    """Buffers as on a TPU.

    | element                   | two or more dimensions        | one dimension        |
    |---------------------------|-------------------------------|----------------------|
    | 32 bits and more          | (8,128)                       | (1024)               |
    |   second minor 1, 2; 3, 4 | (2,128); (4,128)              |                      |
    |   up to 128, 256, 512     |                               | (128), (256), (512)  |
    | 16 bits                   | (8,128)(2,1)                  | (1024)(128)(2,1)     |
    |   second minor 1, 2; 3, 4 | (2,128)(2,1); (4,128)(2,1)    |                      |
    |   up to 256, 512          |                               | (256).., (512)..     |
    | 8 bits, and PRED in bytes | (8,128)(4,1)                  | (1024)(128)(4,1)     |
    |   second minor up to 4    | (4,128)(4,1)                  |                      |
    |   up to 512               |                               | (512)(128)(4,1)      |
    | 4 bits                    | (8,128)(8,1)E(4)              | (1024)(128)(8,1)E(4) |
    | 2 bits                    | (16,128)(16,1)E(2)            | (2048)(128)(16,1)E(2)|
    | 1 bit, and PRED in bits   | (32,128)(32,1)E(1)            | (4096)(128)(32,1)E(1)|

    Scalars: (128) for 32 bits and more, (256) for 16, (512) for 8 and less.

    A tile has at least as many rows as fill one row of words. Of an array with more dimensions only the two most minor
    are tiled. The tiles of a 1-D array are rows that follow each other: as many as it needs, a power of two.

    Differences from XLA's current layouts: it tiles f32[1,n] by (1,128), but its page says (2,128) for sizes 1 and 2,
    which is done here. The shortest 1-D tile was (256) in older modules; in newer ones it is (128), as here. XLA splits
    64-bit numbers and complex ones into arrays of 32 bits before it chooses layouts; here an element is whole, in the
    tiles of 32-bit elements, and one tile takes as many bytes as XLA's two. Scalars of less than a byte are not packed:
    that would save nothing, and a loop's condition can be read as one byte.
    """

    name = "tpu"

    pred_bits: int = 8
    """Bits of a PRED element in an array: 8, as on TPUs, or 1."""
    vmem_bytes: int = 16 * 2**20
    """The size of vector memory. The default is the size on a core of a TPU v2 to v4; a v5p and a v7x have 64 MiB, a
    v5e and a v6e 128 MiB (JAX: pallas/mosaic/tpu_info.py). 0: nothing is put there."""

    def __post_init__(self) -> None:
        if self.pred_bits not in (1, 8):
            raise TargetOptionError(f"pred_bits is {self.pred_bits!r}: a PRED element takes 8 bits or 1")
        if self.vmem_bytes < 0:
            raise TargetOptionError(f"vmem_bytes is {self.vmem_bytes!r}: a number of bytes is 0 or more")

    @property
    def fast_memory(self) -> MemorySpace:
        return MemorySpace(VMEM, "VMEM", self.vmem_bytes)

    def buffer_layout(self, shape: Shape) -> Layout:
        bits = self._bits(shape.element)
        minor_to_major = tuple(range(shape.rank - 1, -1, -1))
        if not shape.dimensions:
            return Layout(minor_to_major, (Tile((LANES * _packing(max(bits, 8)),)),))
        packing = _packing(bits)
        pack = (Tile((packing, 1)),) if packing > 1 else ()
        packed_bits = bits if bits < 8 else 0
        if shape.rank == 1:
            rows = _rows(-(-shape.dimensions[0] // LANES), packing)
            split = (Tile((LANES,)), *pack) if pack else ()
            return Layout(minor_to_major, (Tile((rows * LANES,)), *split), packed_bits)
        rows = _rows(max(shape.dimensions[-2], 2), packing)
        return Layout(minor_to_major, (Tile((rows, LANES)), *pack), packed_bits)

    def _bits(self, element: ElementType) -> int:
        return self.pred_bits if element is ElementType.PRED else element.bit_width


def _packing(bits: int) -> int:
    """Elements in a word; 1 for elements that need one word or two."""
    return max(WORD_BITS // bits, 1)


def _rows(needed: int, packing: int) -> int:
    """The rows of a tile for an array with `needed` rows: the next power of two, at most the rows of a register, at
    least as many as fill a row of words."""
    power = 1 << max(needed - 1, 0).bit_length()
    return max(min(power, SUBLANES), packing)
