"""The fields of StableHLO's records, in the order in which they are written.

Text, portable bytecode and HLO's attributes each say what becomes of a field; its name is here. Source:
StablehloAttrs.td.
"""

from __future__ import annotations

GATHER = (
    *("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims"),
    *("start_index_map", "index_vector_dim"),
)
"""The last one is a number, the others are lists."""
SCATTER = (
    *("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims"),
    *("scatter_dims_to_operand_dims", "index_vector_dim"),
)
"""The last one is a number, the others are lists."""
DOT = {
    "lhs_batching_dimensions": "lhs_batch_dims",
    "rhs_batching_dimensions": "rhs_batch_dims",
    "lhs_contracting_dimensions": "lhs_contracting_dims",
    "rhs_contracting_dimensions": "rhs_contracting_dims",
}
"""With the names in HLO."""
CONVOLUTION = (
    *("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"),
    *("kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions"),
    *("output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"),
)
"""The three of spatial dimensions are lists."""
DOT_ALGORITHM = (
    *("lhs_precision_type", "rhs_precision_type", "accumulation_type", "lhs_component_count", "rhs_component_count"),
    *("num_primitive_operations", "allow_imprecise_accumulation"),
)
