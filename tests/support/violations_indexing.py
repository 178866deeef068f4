"""Violations of the shape rules of gather, scatter, sort and topk: label, opcode, operands, attributes, declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hloom.hlo import ElementType, Opcode
from hloom.hlo.ir import Attributes
from hloom.hlo.ops.indexing import GatherAttributes, ScatterAttributes
from hloom.hlo.ops.sort import SortAttributes, TopKAttributes

from hloom.backend_check.computations import binary_computation
from hloom.backend_check.op_cases_sort import comparator

E = ElementType
O = Opcode  # noqa: E741

Violation = tuple[str, Opcode, list[str], Attributes, str | None]

_ROWS = GatherAttributes((1,), (0,), (0,), 1, (1, 5))
"""Rows of f32[9,5] at s32[6,1]."""
_BATCHED = GatherAttributes((), (1,), (1,), 2, (1, 1), (0,), (0,))
"""Elements of the rows of f32[3,9] at s32[3,4,1]."""

_GATHER_OPERANDS = ["f32[9,5]", "s32[6,1]"]
_BATCHED_OPERANDS = ["f32[3,9]", "s32[3,4,1]"]


def _gathers() -> Iterator[Violation]:
    def wrong(rule: int, operands: list[str] = _GATHER_OPERANDS, **changes: object) -> Violation:
        return f"gather_c{rule}", O.GATHER, operands, replace(_ROWS, **changes), None  # type: ignore[arg-type]

    def batched(rule: int, operands: list[str] = _BATCHED_OPERANDS, **changes: object) -> Violation:
        return f"gather_c{rule}", O.GATHER, operands, replace(_BATCHED, **changes), None  # type: ignore[arg-type]

    yield wrong(1, ["(f32[9,5])", "s32[6,1]"])
    yield wrong(1, ["f32[9,5]", "f32[6,1]"])
    yield wrong(1, ["f32[9,5]", "pred[6,1]"])
    yield wrong(2, index_vector_dim=3)
    yield wrong(2, index_vector_dim=-1)
    yield wrong(3, start_index_map=(0, 1))
    yield wrong(3, start_index_map=(2,))
    yield wrong(3, ["f32[9,5]", "s32[6,2]"], start_index_map=(0, 0))
    yield wrong(4, collapsed_slice_dims=(2,))
    yield wrong(4, collapsed_slice_dims=(1, 0))
    yield wrong(4, collapsed_slice_dims=(0, 0))
    yield batched(5, operand_batching_dims=(1,))
    yield batched(5, operand_batching_dims=(2,))
    yield batched(5, start_indices_batching_dims=(2,))
    yield batched(5, start_indices_batching_dims=())
    yield batched(5, start_indices_batching_dims=(3,))
    yield batched(5, ["f32[4,9]", "s32[3,4,1]"])
    yield wrong(6, slice_sizes=(1,))
    yield wrong(6, slice_sizes=(1, 6))
    yield wrong(6, slice_sizes=(1, -1))
    yield wrong(7, slice_sizes=(2, 5))
    yield batched(7, slice_sizes=(2, 1))
    yield wrong(8, offset_dims=())
    yield wrong(8, offset_dims=(2,))
    yield wrong(8, offset_dims=(0, 1))


_ADD = binary_computation(O.ADD, E.F32)
_UPDATE = ScatterAttributes((1,), (0,), (0,), 1, _ADD)
_UPDATE_BATCHED = ScatterAttributes((), (1,), (1,), 2, _ADD, (0,), (0,))
_SCATTER_OPERANDS = ["f32[9,5]", "s32[6,1]", "f32[6,5]"]
_UPDATE_BATCHED_OPERANDS = ["f32[3,9]", "s32[3,4,1]", "f32[3,4]"]


def _scatters() -> Iterator[Violation]:
    def wrong(rule: int, operands: list[str] = _SCATTER_OPERANDS, **changes: object) -> Violation:
        return f"scatter_c{rule}", O.SCATTER, operands, replace(_UPDATE, **changes), None  # type: ignore[arg-type]

    def batched(rule: int, operands: list[str] = _UPDATE_BATCHED_OPERANDS, **changes: object) -> Violation:
        attributes = replace(_UPDATE_BATCHED, **changes)  # type: ignore[arg-type]
        return f"scatter_c{rule}", O.SCATTER, operands, attributes, None

    yield wrong(1, ["f32[9,5]", "s32[6,1]"])
    yield wrong(1, ["s32[6,1]"])
    yield wrong(1, ["(f32[9,5])", "s32[6,1]", "f32[6,5]"])
    yield wrong(1, ["f32[9,5]", "f32[6,1]", "f32[6,5]"])
    yield wrong(2, ["f32[9,5]", "s32[6,1]", "f64[6,5]"])
    yield wrong(2, ["f32[9,5]", "f32[9,4]", "s32[6,1]", "f32[6,5]", "f32[6,5]"])
    yield wrong(3, index_vector_dim=3)
    yield wrong(4, update_window_dims=(2,))
    yield wrong(4, update_window_dims=(1, 0))
    yield wrong(5, inserted_window_dims=(2,))
    yield wrong(5, inserted_window_dims=(1, 0))
    yield batched(6, input_batching_dims=(1,))
    yield batched(6, scatter_indices_batching_dims=(2,))
    yield batched(6, scatter_indices_batching_dims=(1,))
    yield batched(6, scatter_indices_batching_dims=())
    yield wrong(7, inserted_window_dims=())
    yield wrong(8, scatter_dims_to_operand_dims=())
    yield wrong(8, scatter_dims_to_operand_dims=(2,))
    yield wrong(9, ["f32[9,5]", "s32[6,1]", "f32[6,5,1]"])
    yield wrong(9, ["f32[9,5]", "s32[6,1]", "f32[6,6]"])
    yield wrong(9, ["f32[9,5]", "s32[6,1]", "f32[7,5]"])
    yield wrong(10, to_apply=binary_computation(O.ADD, E.S32))
    yield wrong(10, to_apply=comparator([E.F32]))


def _sorts() -> Iterator[Violation]:
    by = comparator([E.F32])
    along = SortAttributes(0, by)
    yield "sort_c1", O.SORT, [], along, None
    yield "sort_c1", O.SORT, ["(f32[4])"], along, None
    yield "sort_c2", O.SORT, ["f32[4]", "f32[5]"], along, None
    yield "sort_c3", O.SORT, ["f32[]"], along, None
    yield "sort_c3", O.SORT, ["f32[4]"], SortAttributes(1, by), None
    yield "sort_c3", O.SORT, ["f32[4]"], SortAttributes(-1, by), None
    yield "sort_c4", O.SORT, ["s32[4]"], along, None
    yield "sort_c4", O.SORT, ["f32[4]", "s32[4]"], along, None
    yield "sort_c4", O.SORT, ["f32[4]"], SortAttributes(0, _ADD), None
    yield "topk_c1", O.TOPK, ["(f32[4])"], TopKAttributes(1), None
    yield "topk_c1", O.TOPK, ["f32[]"], TopKAttributes(0), None
    yield "topk_c1", O.TOPK, ["c64[4]"], TopKAttributes(1), None
    yield "topk_c2", O.TOPK, ["f32[3,4]"], TopKAttributes(5), None
    yield "topk_c2", O.TOPK, ["f32[3,4]"], TopKAttributes(-1), None


INDEXING_VIOLATIONS: list[Violation] = [*_gathers(), *_scatters(), *_sorts()]
