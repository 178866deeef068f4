"""`hloom.lax`: JAX's thin layer over HLO: a function for each operation, operands of one dtype, almost no broadcasting.

A family's file has the same name in every layer. Functions that promote dtypes or broadcast are in `hloom/numpy`.
"""

import typing as _typing

from .. import array_functions as _array_functions
from ..namespaces import publish as _publish
from ..tracer.control_flow import cond, platform_dependent, switch, while_loop
from ..tracer.scan import fori_loop, scan
from . import (
    control_flow,
    convolution,
    elementwise,
    indexing,
    instructions,
    movement,
    parallel,
    solves,
    special,
    structure,
    window,
)
from . import dot as _dot
from . import fft as _fft
from . import gather as _gather
from . import reduce as _reduce
from . import sort as _sort
from .control_flow import (
    associative_scan as associative_scan,
    map as map,
)
from .convolution import (
    ConvDimensionNumbers as ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
    conv as conv,
    conv_dimension_numbers as conv_dimension_numbers,
    conv_general_dilated as conv_general_dilated,
    conv_general_dilated_local as conv_general_dilated_local,
    conv_general_dilated_patches as conv_general_dilated_patches,
    conv_general_permutations as conv_general_permutations,
    conv_transpose as conv_transpose,
    conv_with_general_padding as conv_with_general_padding,
)
from .dot import (
    Precision as Precision,
    RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
    batch_matmul as batch_matmul,
    dot as dot,
    dot_general as dot_general,
    ragged_dot as ragged_dot,
    ragged_dot_general as ragged_dot_general,
)
from .elementwise import (
    RoundingMethod as RoundingMethod,
    atan as atan,
    bitcast_convert_type as bitcast_convert_type,
    clamp as clamp,
    complex as complex,
    conj as conj,
    convert_element_type as convert_element_type,
    exp2 as exp2,
    imag as imag,
    integer_pow as integer_pow,
    pow as pow,
    real as real,
    reciprocal as reciprocal,
    reduce_precision as reduce_precision,
    round as round,
    select_n as select_n,
    sign as sign,
    square as square,
)
from .fft import (
    FftType as FftType,
    fft as fft,
)
from .gather import (
    GatherDimensionNumbers as GatherDimensionNumbers,
    ScatterDimensionNumbers as ScatterDimensionNumbers,
    gather as gather,
    scatter as scatter,
    scatter_add as scatter_add,
    scatter_apply as scatter_apply,
    scatter_max as scatter_max,
    scatter_min as scatter_min,
    scatter_mul as scatter_mul,
    scatter_sub as scatter_sub,
)
from .indexing import (
    GatherScatterMode as GatherScatterMode,
    dynamic_index_in_dim as dynamic_index_in_dim,
    dynamic_slice as dynamic_slice,
    dynamic_slice_in_dim as dynamic_slice_in_dim,
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
    dynamic_update_slice as dynamic_update_slice,
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
)
from .instructions import (
    abs as abs,
    acos as acos,
    acosh as acosh,
    add as add,
    asin as asin,
    asinh as asinh,
    atan2 as atan2,
    atanh as atanh,
    bitwise_and as bitwise_and,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    cbrt as cbrt,
    ceil as ceil,
    clz as clz,
    cos as cos,
    cosh as cosh,
    div as div,
    eq as eq,
    erf as erf,
    exp as exp,
    expm1 as expm1,
    floor as floor,
    ge as ge,
    gt as gt,
    is_finite as is_finite,
    le as le,
    log as log,
    log1p as log1p,
    logistic as logistic,
    lt as lt,
    max as max,
    min as min,
    mul as mul,
    ne as ne,
    neg as neg,
    population_count as population_count,
    rem as rem,
    rsqrt as rsqrt,
    select as select,
    shift_left as shift_left,
    shift_right_arithmetic as shift_right_arithmetic,
    shift_right_logical as shift_right_logical,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    sub as sub,
    tan as tan,
    tanh as tanh,
)
from .movement import (
    broadcast as broadcast,
    broadcast_in_dim as broadcast_in_dim,
    broadcast_shapes as broadcast_shapes,
    broadcasted_iota as broadcasted_iota,
    collapse as collapse,
    concatenate as concatenate,
    expand_dims as expand_dims,
    full as full,
    full_like as full_like,
    index_in_dim as index_in_dim,
    iota as iota,
    pad as pad,
    reshape as reshape,
    rev as rev,
    slice as slice,
    slice_in_dim as slice_in_dim,
    split as split,
    squeeze as squeeze,
    transpose as transpose,
)
from .parallel import (
    all_gather as all_gather,
    all_to_all as all_to_all,
    axis_index as axis_index,
    axis_size as axis_size,
    pmax as pmax,
    pmean as pmean,
    pmin as pmin,
    ppermute as ppermute,
    pshuffle as pshuffle,
    psum as psum,
    psum_scatter as psum_scatter,
    pswapaxes as pswapaxes,
)
from .reduce import (
    argmax as argmax,
    argmin as argmin,
    cumlogsumexp as cumlogsumexp,
    cummax as cummax,
    cummin as cummin,
    cumprod as cumprod,
    cumsum as cumsum,
    reduce as reduce,
    reduce_and as reduce_and,
    reduce_max as reduce_max,
    reduce_min as reduce_min,
    reduce_or as reduce_or,
    reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
    reduce_xor as reduce_xor,
)
from .solves import (
    custom_linear_solve as custom_linear_solve,
    custom_root as custom_root,
)
from .sort import (
    approx_max_k as approx_max_k,
    approx_min_k as approx_min_k,
    sort as sort,
    sort_key_val as sort_key_val,
    top_k as top_k,
)
from .special import (
    erf_inv as erf_inv,
    nextafter as nextafter,
)
from .structure import (
    optimization_barrier as optimization_barrier,
    stop_gradient as stop_gradient,
)
from .window import (
    padtype_to_pads as padtype_to_pads,
    reduce_window as reduce_window,
)

if _typing.TYPE_CHECKING:
    from . import linalg

__all__ = ["cond", "fori_loop", "linalg", "platform_dependent", "scan", "switch", "while_loop"]
__all__ += control_flow.__all__
__all__ += convolution.__all__
__all__ += _dot.__all__
__all__ += _gather.__all__
__all__ += elementwise.__all__
__all__ += _fft.__all__
__all__ += indexing.__all__
__all__ += instructions.__all__
__all__ += movement.__all__
__all__ += _reduce.__all__
__all__ += parallel.__all__
__all__ += solves.__all__
__all__ += _sort.__all__
__all__ += special.__all__
__all__ += structure.__all__
__all__ += window.__all__

_array_functions.load_when_used()
del control_flow, convolution, elementwise, indexing, instructions, movement, parallel, solves, special, structure
del window

_publish(__name__, "linalg")
