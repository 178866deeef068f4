"""The worked examples of "Operation Semantics" (XLA's first documentation, 2017) that move elements. Each names its
section."""

from __future__ import annotations

import numpy as np
from hloom.hlo import PaddingConfig

from .seed_program import B, Example, Given, Handle, f32, s32

V = f32([
    [[10, 11, 12], [15, 16, 17]],
    [[20, 21, 22], [25, 26, 27]],
    [[30, 31, 32], [35, 36, 37]],
    [[40, 41, 42], [45, 46, 47]],
])  # fmt: skip
"""The array v of "Collapse" and "Reshape"."""
FLAT = f32([10, 11, 12, 15, 16, 17, 20, 21, 22, 25, 26, 27, 30, 31, 32, 35, 36, 37, 40, 41, 42, 45, 46, 47])
OUT_OF_ORDER = f32([10, 20, 30, 40, 11, 21, 31, 41, 12, 22, 32, 42, 15, 25, 35, 45, 16, 26, 36, 46, 17, 27, 37, 47])
FIVE = f32([0, 1, 2, 3, 4])
TWELVE = f32([[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]])


def reverse_kernel(b: B, given: Given) -> Handle:
    return b.rev(given([[[[1, 2, 3], [4, 5, 6]]]]), (2, 3))


def transpose_as_reshape(b: B, given: Given) -> Handle:
    """The section's definition: Reshape(operand, permutation, Permute(permutation, dimensions)). Returns both sides."""
    v = given(V)
    return b.tuple([b.transpose(v, (1, 2, 0)), b.reshape(v, (1, 2, 0), (2, 3, 4))])


def update_in_two_dimensions(b: B, given: Given) -> Handle:
    return b.dynamic_update_slice(given(TWELVE), given([[12, 13], [14, 15], [16, 17]]), given([1, 1], np.int32))


def slice_at_scalars(b: B, given: Given) -> Handle:
    return b.dynamic_slice(given(TWELVE), [given(2, np.int32), given(1, np.int32)], (2, 2))


EXAMPLES = (
    Example("Broadcast", "a scalar to [2,3]", lambda b, g: b.broadcast(g(2.0), (2, 3)), np.full((2, 3), 2, np.float32)),
    Example(
        "Broadcast",
        "output[i, j] = operand[j]",
        lambda b, g: b.broadcast(g([1, 2]), (3,)),
        f32([[1, 2], [1, 2], [1, 2]]),
    ),
    Example("Collapse", "{0,1,2}", lambda b, g: b.collapse(g(V), (0, 1, 2)), FLAT),
    Example("Collapse", "{0,1}", lambda b, g: b.collapse(g(V), (0, 1)), FLAT.reshape(8, 3)),
    Example("Collapse", "{1,2}", lambda b, g: b.collapse(g(V), (1, 2)), FLAT.reshape(4, 6)),
    Example(
        "Collapse",
        "{x=256, y=2, z=2, p=32} by {0, 1, 2} (C++ interface)",
        lambda b, g: b.collapse(b.broadcast(g(3.0), (256, 2, 2, 32)), (0, 1, 2)),
        np.full((1024, 32), 3, np.float32),
    ),
    Example("Collapse", "one dimension is left as it is", lambda b, g: b.collapse(g(V), (1,)), V),
    Example(
        "Concatenate",
        "1-dimensional",
        lambda b, g: b.concat_in_dim([g([2, 3]), g([4, 5]), g([6, 7])], 0),
        f32([2, 3, 4, 5, 6, 7]),
    ),
    Example(
        "Concatenate",
        "2-dimensional",
        lambda b, g: b.concat_in_dim([g([[1, 2], [3, 4], [5, 6]]), g([[7, 8]])], 0),
        f32([[1, 2], [3, 4], [5, 6], [7, 8]]),
    ),
    Example("DynamicSlice", "1-dimensional", lambda b, g: b.dynamic_slice(g(FIVE), g([2], np.int32), (2,)), f32(2, 3)),
    Example(
        "DynamicSlice",
        "2-dimensional",
        lambda b, g: b.dynamic_slice(g(TWELVE), g([2, 1], np.int32), (2, 2)),
        f32([[7, 8], [10, 11]]),
    ),
    Example("DynamicSlice", "2-dimensional, starts as scalars", slice_at_scalars, f32([[7, 8], [10, 11]])),
    Example(
        "DynamicSlice",
        "out of bounds: today clamped, in 2017 modulo the size",
        lambda b, g: b.dynamic_slice(g(FIVE), g([4], np.int32), (2,)),
        f32(3, 4),
    ),
    Example(
        "DynamicUpdateSlice",
        "1-dimensional",
        lambda b, g: b.dynamic_update_slice(g(FIVE), g([5, 6]), g([2], np.int32)),
        f32(0, 1, 5, 6, 4),
    ),
    Example(
        "DynamicUpdateSlice",
        "2-dimensional",
        update_in_two_dimensions,
        f32([[0, 1, 2], [3, 12, 13], [6, 14, 15], [9, 16, 17]]),
    ),
    Example(
        "DynamicUpdateSlice",
        "out of bounds: today clamped, in 2017 modulo the size",
        lambda b, g: b.dynamic_update_slice(g(FIVE), g([5, 6]), g([7], np.int32)),
        f32(0, 1, 2, 5, 6),
    ),
    Example(
        "Pad",
        "edges and interior, as in the figure",
        lambda b, g: b.pad(g([[1, 2, 3], [4, 5, 6]]), g(0.0), PaddingConfig.of((0, 2, 1), (1, 0, 0))),
        f32([[0, 1, 2, 3], [0, 0, 0, 0], [0, 4, 5, 6], [0, 0, 0, 0], [0, 0, 0, 0]]),
    ),
    Example(
        "Pad",
        "negative edges remove from the interior-padded operand",
        lambda b, g: b.pad(g([1, 2, 3]), g(9.0), PaddingConfig.of((-1, -2, 2))),
        f32([9, 9, 2, 9]),
    ),
    Example(
        "Pad",
        "all zero: a no-op",
        lambda b, g: b.pad(g(TWELVE), g(9.0), PaddingConfig.of((0, 0), (0, 0))),
        TWELVE,
    ),
    Example("Reshape", "v012_24", lambda b, g: b.reshape(g(V), (0, 1, 2), (24,)), FLAT),
    Example("Reshape", "v012_83", lambda b, g: b.reshape(g(V), (0, 1, 2), (8, 3)), FLAT.reshape(8, 3)),
    Example("Reshape", "without dimensions", lambda b, g: b.reshape(g(V), (8, 3)), FLAT.reshape(8, 3)),
    Example("Reshape", "v021_24", lambda b, g: b.reshape(g(V), (1, 2, 0), (24,)), OUT_OF_ORDER),
    Example("Reshape", "v021_83", lambda b, g: b.reshape(g(V), (1, 2, 0), (8, 3)), OUT_OF_ORDER.reshape(8, 3)),
    Example(
        "Reshape",
        "v021_262",
        lambda b, g: b.reshape(g(V), (1, 2, 0), (2, 6, 2)),
        f32([
            [[10, 20], [30, 40], [11, 21], [31, 41], [12, 22], [32, 42]],
            [[15, 25], [35, 45], [16, 26], [36, 46], [17, 27], [37, 47]],
        ]),
    ),
    Example("Reshape", "f32[1x1] to a scalar", lambda b, g: b.reshape(g([[5]]), (0, 1), ()), f32(5)),
    Example("Reshape", "a scalar to f32[1x1]", lambda b, g: b.reshape(g(5), (), (1, 1)), f32([[5]])),
    Example("Rev", "a kernel along its two window dimensions", reverse_kernel, f32([[[[6, 5, 4], [3, 2, 1]]]])),
    Example("Rev", "index i becomes N - 1 - i", lambda b, g: b.rev(g([0, 1, 2, 3]), (0,)), f32(3, 2, 1, 0)),
    Example("Slice", "1-dimensional", lambda b, g: b.slice(g(FIVE), (2,), (4,)), f32(2, 3)),
    Example("Slice", "2-dimensional", lambda b, g: b.slice(g(TWELVE), (2, 1), (4, 3)), f32([[7, 8], [10, 11]])),
    Example(
        "Slice",
        "start={1, 1}, limit={2, 3} (C++ interface)",
        lambda b, g: b.slice(g([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], np.int32), (1, 1), (2, 3)),
        s32([[5, 6]]),
    ),
    Example("Sort", "ascending", lambda b, g: b.sort(g([3, -1, 2, 0.5, -7])), f32(-7, -1, 0.5, 2, 3)),
    Example("Sort", "integers", lambda b, g: b.sort(g([3, -1, 2, 3, -7], np.int32)), s32(-7, -1, 2, 3, 3)),
    Example(
        "Transpose",
        "is Reshape(operand, permutation, Permute(permutation, dimensions))",
        transpose_as_reshape,
        (V.transpose(1, 2, 0), V.transpose(1, 2, 0)),
    ),
    Example("Trans", "of a matrix", lambda b, g: b.trans(g([[1, 2, 3], [4, 5, 6]])), f32([[1, 4], [2, 5], [3, 6]])),
)
