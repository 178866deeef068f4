from . import fft as fft, linalg as linalg
from ..lax import broadcast_shapes as broadcast_shapes
from ..tracer.arrays.operators import ArrayBase as _ArrayBase
from ..tracer.dtypes import (
    finfo as finfo, iinfo as iinfo, issubdtype as issubdtype, promote_types as promote_types,
    result_type as result_type,
)
from .array_api import namespace_info as _namespace_info
from .array_creation import (
    arange as arange, array as array, asarray as asarray, copy as copy, empty as empty, empty_like as empty_like,
    eye as eye, from_dlpack as from_dlpack, full as full, full_like as full_like, geomspace as geomspace,
    identity as identity, indices as indices, linspace as linspace, logspace as logspace, meshgrid as meshgrid,
    ones as ones, ones_like as ones_like, zeros as zeros, zeros_like as zeros_like,
)
from .array_manipulation import (
    append as append, array_split as array_split, atleast_1d as atleast_1d, atleast_2d as atleast_2d,
    broadcast_arrays as broadcast_arrays, broadcast_to as broadcast_to, column_stack as column_stack,
    concat as concat, concatenate as concatenate, diag as diag, diagonal as diagonal, diff as diff, dstack as dstack,
    expand_dims as expand_dims, flip as flip, fliplr as fliplr, flipud as flipud, hstack as hstack,
    matrix_transpose as matrix_transpose, moveaxis as moveaxis, permute_dims as permute_dims, ravel as ravel,
    reshape as reshape, roll as roll, rot90 as rot90, split as split, squeeze as squeeze, stack as stack,
    swapaxes as swapaxes, tile as tile, trace as trace, transpose as transpose, tri as tri, tril as tril,
    triu as triu, vstack as vstack,
)
from .binary_ufuncs import (
    arctan2 as arctan2, atan2 as atan2, bitwise_left_shift as bitwise_left_shift,
    bitwise_right_shift as bitwise_right_shift, copysign as copysign, divide as divide, divmod as divmod,
    equal as equal, float_power as float_power, floor_divide as floor_divide, fmax as fmax, fmin as fmin,
    fmod as fmod, greater as greater, greater_equal as greater_equal, heaviside as heaviside, hypot as hypot,
    left_shift as left_shift, less as less, less_equal as less_equal, mod as mod, not_equal as not_equal, pow as pow,
    power as power, remainder as remainder, right_shift as right_shift, true_divide as true_divide,
)
from .bitwise import bitwise_count as bitwise_count, packbits as packbits, unpackbits as unpackbits
from .calculus import (
    ediff1d as ediff1d, gradient as gradient, interp as interp, trapezoid as trapezoid, unwrap as unwrap,
)
from .casting import astype as astype
from .convolution import convolve as convolve, correlate as correlate
from .cumulative_reductions import (
    cumprod as cumprod, cumsum as cumsum, cumulative_prod as cumulative_prod, cumulative_sum as cumulative_sum,
    nancumprod as nancumprod, nancumsum as nancumsum,
)
from .einstein_sums import einsum as einsum, einsum_path as einsum_path
from .floating_point import frexp as frexp, ldexp as ldexp, modf as modf, nextafter as nextafter, spacing as spacing
from .index_tricks import (
    c_ as c_, diag_indices as diag_indices, diag_indices_from as diag_indices_from, diagflat as diagflat,
    index_exp as index_exp, ix_ as ix_, mask_indices as mask_indices, mgrid as mgrid, ogrid as ogrid, r_ as r_,
    s_ as s_, tril_indices as tril_indices, tril_indices_from as tril_indices_from, triu_indices as triu_indices,
    triu_indices_from as triu_indices_from,
)
from .indexing_routines import (
    choose as choose, fill_diagonal as fill_diagonal, place as place, put as put, put_along_axis as put_along_axis,
    ravel_multi_index as ravel_multi_index, take as take, take_along_axis as take_along_axis,
    unravel_index as unravel_index,
)
from .insert_delete import (
    compress as compress, delete as delete, extract as extract, insert as insert, piecewise as piecewise,
    trim_zeros as trim_zeros,
)
from .io import (
    array_repr as array_repr, array_str as array_str, frombuffer as frombuffer, fromfile as fromfile,
    fromiter as fromiter, fromstring as fromstring, get_printoptions as get_printoptions, iterable as iterable,
    load as load, printoptions as printoptions, save as save, savez as savez, set_printoptions as set_printoptions,
)
from .logic import (
    allclose as allclose, array_equal as array_equal, array_equiv as array_equiv, can_cast as can_cast,
    isclose as isclose, iscomplex as iscomplex, iscomplexobj as iscomplexobj, isdtype as isdtype, isreal as isreal,
    isrealobj as isrealobj, isscalar as isscalar, ndim as ndim, shape as shape, size as size,
)
from .nanfunctions import (
    nanargmax as nanargmax, nanargmin as nanargmin, nanmax as nanmax, nanmean as nanmean, nanmin as nanmin,
    nanprod as nanprod, nanstd as nanstd, nansum as nansum, nanvar as nanvar,
)
from .order_statistics import (
    median as median, nanmedian as nanmedian, nanpercentile as nanpercentile, nanquantile as nanquantile,
    percentile as percentile, quantile as quantile,
)
from .padding import pad as pad
from .polynomial import (
    poly as poly, polyadd as polyadd, polyder as polyder, polydiv as polydiv, polyfit as polyfit, polyint as polyint,
    polymul as polymul, polysub as polysub, polyval as polyval, roots as roots,
)
from .rational import gcd as gcd, lcm as lcm
from .reductions import (
    all as all, amax as amax, amin as amin, any as any, argmax as argmax, argmin as argmin, average as average,
    count_nonzero as count_nonzero, max as max, mean as mean, min as min, minmax as minmax, prod as prod, ptp as ptp,
    std as std, sum as sum, var as var,
)
from .repetition import repeat as repeat
from .scalar_types import (
    bfloat16 as bfloat16, bool as bool, bool_ as bool_, cdouble as cdouble, character as character,
    complex128 as complex128, complex64 as complex64, complex_ as complex_, complexfloating as complexfloating,
    ComplexWarning as ComplexWarning, csingle as csingle, double as double, dtype as dtype, e as e,
    euler_gamma as euler_gamma, flexible as flexible, float16 as float16, float32 as float32,
    float4_e2m1fn as float4_e2m1fn, float64 as float64, float6_e2m3fn as float6_e2m3fn,
    float6_e3m2fn as float6_e3m2fn, float8_e3m4 as float8_e3m4, float8_e4m3 as float8_e4m3,
    float8_e4m3b11fnuz as float8_e4m3b11fnuz, float8_e4m3fn as float8_e4m3fn, float8_e4m3fnuz as float8_e4m3fnuz,
    float8_e5m2 as float8_e5m2, float8_e5m2fnuz as float8_e5m2fnuz, float8_e8m0fnu as float8_e8m0fnu,
    float_ as float_, floating as floating, generic as generic, inexact as inexact, inf as inf, int1 as int1,
    int16 as int16, int2 as int2, int32 as int32, int4 as int4, int64 as int64, int8 as int8, int_ as int_,
    integer as integer, nan as nan, newaxis as newaxis, number as number, object_ as object_, pi as pi,
    signedinteger as signedinteger, single as single, uint as uint, uint1 as uint1, uint16 as uint16, uint2 as uint2,
    uint32 as uint32, uint4 as uint4, uint64 as uint64, uint8 as uint8, unsignedinteger as unsignedinteger,
)
from .searching import argwhere as argwhere, flatnonzero as flatnonzero, nonzero as nonzero
from .selection import clip as clip, nan_to_num as nan_to_num, select as select, where as where
from .setops import (
    intersect1d as intersect1d, isin as isin, setdiff1d as setdiff1d, setxor1d as setxor1d, union1d as union1d,
    unique as unique, unique_all as unique_all, unique_counts as unique_counts, unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from .shape_base import (
    apply_along_axis as apply_along_axis, apply_over_axes as apply_over_axes, atleast_3d as atleast_3d,
    block as block, dsplit as dsplit, fromfunction as fromfunction, hsplit as hsplit, resize as resize,
    rollaxis as rollaxis, unstack as unstack, vander as vander, vsplit as vsplit,
)
from .sorting import (
    argpartition as argpartition, argsort as argsort, digitize as digitize, lexsort as lexsort,
    partition as partition, searchsorted as searchsorted, sort as sort, sort_complex as sort_complex, top_k as top_k,
)
from .statistics import (
    bincount as bincount, corrcoef as corrcoef, cov as cov, histogram as histogram, histogram2d as histogram2d,
    histogram_bin_edges as histogram_bin_edges, histogramdd as histogramdd,
)
from .tensor_contractions import (
    cross as cross, dot as dot, inner as inner, kron as kron, matmul as matmul, matvec as matvec, outer as outer,
    tensordot as tensordot, vdot as vdot, vecdot as vecdot, vecmat as vecmat,
)
from .ufunc_api import (
    add as add, bitwise_and as bitwise_and, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor,
    frompyfunc as frompyfunc, logaddexp as logaddexp, logaddexp2 as logaddexp2, logical_and as logical_and,
    logical_or as logical_or, logical_xor as logical_xor, maximum as maximum, minimum as minimum,
    multiply as multiply, negative as negative, subtract as subtract, ufunc as ufunc,
)
from .unary_ufuncs import (
    abs as abs, absolute as absolute, acos as acos, acosh as acosh, angle as angle, arccos as arccos,
    arccosh as arccosh, arcsin as arcsin, arcsinh as arcsinh, arctan as arctan, arctanh as arctanh, around as around,
    asin as asin, asinh as asinh, atan as atan, atanh as atanh, bitwise_invert as bitwise_invert,
    bitwise_not as bitwise_not, cbrt as cbrt, ceil as ceil, conj as conj, conjugate as conjugate, cos as cos,
    cosh as cosh, deg2rad as deg2rad, degrees as degrees, exp as exp, exp2 as exp2, expm1 as expm1, fabs as fabs,
    fix as fix, floor as floor, imag as imag, invert as invert, isfinite as isfinite, isinf as isinf, isnan as isnan,
    isneginf as isneginf, isposinf as isposinf, log as log, log10 as log10, log1p as log1p, log2 as log2,
    logical_not as logical_not, positive as positive, rad2deg as rad2deg, radians as radians, real as real,
    reciprocal as reciprocal, rint as rint, round as round, sign as sign, signbit as signbit, sin as sin,
    sinc as sinc, sinh as sinh, sqrt as sqrt, square as square, tan as tan, tanh as tanh, trunc as trunc,
)
from .vectorizing import vectorize as vectorize
from .window_functions import (
    bartlett as bartlett, blackman as blackman, hamming as hamming, hanning as hanning, i0 as i0, kaiser as kaiser,
)

__array_api_version__: str
__array_namespace_info__ = _namespace_info
ndarray = _ArrayBase
