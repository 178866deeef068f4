"""Output fusions: a product, a convolution or a window, and the instructions that follow it row by row, as one
instruction.

XLA's word for a fusion that does not begin with an element-wise instruction, and whose other instructions use its
output: kind `kOutput`. Here each instruction keeps a kernel of its own (or is a call of BLAS). All of them run one
after another on a piece of the rows, and then on the next piece. So the results of one are in the cache when the next
one reads them::

    out = (f32[9,64,32], u8[147456]) fusion(q, k, v), kind=kOutput, calls=attention,
        backend_config={"matrices":"9","rows":"1","step":"1","parts":"9"}

A scatter with cheap computations of its indices and updates, which its kernel does, is a fusion of kind `kInput`.

`fuse.py` makes them, after scheduling and before buffers are assigned; `find.py` says which instructions run so;
`memory.py` says where the values inside are: in the memory of a result, or in the fusion's own memory, its last result,
which no instruction reads. `lowering.py` only translates.
"""

from .form import Leaf, Pieces, in_place, is_output_fusion, leaf_of, pieces_of, scatter_of
from .memory import OutputMemory, Placement, memory_of

__all__ = [
    "Leaf", "OutputMemory", "Pieces", "Placement", "in_place", "is_output_fusion", "leaf_of", "memory_of", "pieces_of",
    "scatter_of",
]  # fmt: skip
