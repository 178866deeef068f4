"""ComputationBuilder: the class that users see, with a line for each of its operations."""

from __future__ import annotations

from ..element_type import ElementType
from ..opcode import Opcode
from ..ops import SPECS
from ..ops.elementwise import ComparisonDirection
from . import constants, elementwise, movement, products, reductions, structure
from .core import BuilderCore
from .operation import add_operations, array_of_rank, binary, comparison, effect, operation, unary


class ComputationBuilder(BuilderCore):
    """Builds a computation, operation by operation: the client interface of XLA's first years.

        builder = ComputationBuilder("axpy")
        alpha = builder.parameter(0, Shape.parse("f32[]"), "alpha")
        x = builder.parameter(1, Shape.parse("f32[10]"), "x")
        y = builder.parameter(2, Shape.parse("f32[10]"), "y")
        builder.add(builder.mul(alpha, x), y)
        axpy = builder.build()

    Methods have the names of the C++ class in the seeds (the four pages of XLA's first documentation, 2017) in
    snake_case, with a `_` after Python's keywords. Each takes and returns ComputationDataHandles. Shapes are inferred
    at once; an error is noted and raised by `build`, or at once after `set_die_immediately_on_error(True)`. It names
    the method, the operands' shapes, the violated rule and the user's line. The result is today's HLO: `docs/ops.md`
    lists the differences from the interface's documents.
    """

    # ---- parameters and constants

    parameter = operation(constants.parameter)
    constant_literal = operation(constants.constant_literal)
    constant_r0 = operation(constants.constant_r0)
    constant_r1 = operation(constants.constant_r1)
    constant_r2 = array_of_rank(2, "A matrix: a list of rows, or an array. builder_c9: as for r0, and the rank is 2.")
    constant_r2_from_array2d = array_of_rank(2, "As `constant_r2`.")
    constant_r3 = array_of_rank(3, "An array of rank 3. builder_c9: as for r0, and the rank is 3.")
    constant_r3_from_array3d = array_of_rank(3, "As `constant_r3`.")
    constant_r4 = array_of_rank(4, "An array of rank 4. builder_c9: as for r0, and the rank is 4.")
    constant_r4_from_array4d = array_of_rank(4, "As `constant_r4`.")

    # ---- element by element: two operands, broadcast as `plan_broadcast` says

    add = binary(Opcode.ADD, "lhs + rhs. Integers wrap around; pred: or.")
    sub = binary(Opcode.SUBTRACT, "lhs - rhs.")
    mul = binary(Opcode.MULTIPLY, "lhs * rhs; pred: and.")
    div = binary(Opcode.DIVIDE, "lhs / rhs; of integers towards zero, x / 0 is all bits set.")
    rem = binary(Opcode.REMAINDER, "The remainder of lhs / rhs, with the sign of lhs.")
    max = binary(Opcode.MAXIMUM, "The larger one; NaN if one is NaN.")
    min = binary(Opcode.MINIMUM, "The smaller one; NaN if one is NaN.")
    pow = binary(Opcode.POWER, "lhs to the power of rhs.")
    and_ = binary(Opcode.AND, "Logical and of pred, bitwise of integers.")
    or_ = binary(Opcode.OR, "Logical or of pred, bitwise of integers.")
    logical_and = binary(Opcode.AND, "`and_` of pred. builder_c10: the operands are pred.", ElementType.PRED)
    logical_or = binary(Opcode.OR, "`or_` of pred. builder_c10: the operands are pred.", ElementType.PRED)
    xor = binary(Opcode.XOR, "Exclusive or: logical of pred, bitwise of integers.")
    shift_left = binary(Opcode.SHIFT_LEFT, "lhs * 2**rhs; zeros come in from the right.")
    shift_right_arithmetic = binary(
        Opcode.SHIFT_RIGHT_ARITHMETIC, "The bits of lhs moved right by rhs; copies of the sign come in."
    )
    shift_right_logical = binary(Opcode.SHIFT_RIGHT_LOGICAL, "The bits of lhs moved right by rhs; zeros come in.")
    mulhi = binary(Opcode.MULHI, "The upper half of the product of integers.")
    atan2 = binary(Opcode.ATAN2, "The angle of the point (rhs, lhs), in radians.")
    complex = binary(Opcode.COMPLEX, "lhs + i rhs.")

    # ---- comparisons: by value, NaN is unordered

    eq = comparison(ComparisonDirection.EQ, "lhs == rhs, as pred.")
    ne = comparison(ComparisonDirection.NE, "lhs != rhs, as pred.")
    ge = comparison(ComparisonDirection.GE, "lhs >= rhs, as pred.")
    gt = comparison(ComparisonDirection.GT, "lhs > rhs, as pred.")
    lt = comparison(ComparisonDirection.LT, "lhs < rhs, as pred.")
    le = comparison(ComparisonDirection.LE, "lhs <= rhs, as pred.")

    # ---- one operand

    abs = unary(Opcode.ABS, "|x|; real for complex numbers.")
    ceil = unary(Opcode.CEIL, "The next integer above.")
    cos = unary(Opcode.COS, "The cosine, of radians.")
    exp = unary(Opcode.EXP, "e to the power of x.")
    floor = unary(Opcode.FLOOR, "The next integer below.")
    is_finite = unary(Opcode.IS_FINITE, "Neither infinite nor NaN, as pred.")
    log = unary(Opcode.LOG, "The natural logarithm.")
    neg = unary(Opcode.NEGATE, "-x; integers wrap around.")
    not_ = unary(Opcode.NOT, "Logical not of pred, bitwise of integers.")
    logical_not = unary(Opcode.NOT, "`not_` of pred. builder_c10: the operand is pred.", ElementType.PRED)
    sign = unary(Opcode.SIGN, "-1, 0 or 1; zeros keep their sign, NaN stays.")
    sin = unary(Opcode.SIN, "The sine, of radians.")
    sqrt = unary(Opcode.SQRT, "The square root; NaN for negative numbers.")
    tanh = unary(Opcode.TANH, "The hyperbolic tangent.")
    sqrt_f32 = unary(Opcode.SQRT, "`sqrt`. builder_c10: the operand is f32.", ElementType.F32)
    acos = unary(Opcode.ACOS, "The inverse cosine, in radians.")
    acosh = unary(Opcode.ACOSH, "The inverse hyperbolic cosine.")
    asin = unary(Opcode.ASIN, "The inverse sine, in radians.")
    asinh = unary(Opcode.ASINH, "The inverse hyperbolic sine.")
    atanh = unary(Opcode.ATANH, "The inverse hyperbolic tangent.")
    cbrt = unary(Opcode.CBRT, "The cube root.")
    copy = unary(Opcode.COPY, "x.")
    cosh = unary(Opcode.COSH, "The hyperbolic cosine.")
    count_leading_zeros = unary(Opcode.COUNT_LEADING_ZEROS, "How many zeros an integer's bits begin with.")
    erf = unary(Opcode.ERF, "The error function.")
    expm1 = unary(Opcode.EXPM1, "e to the power of x, minus 1; exact near 0.")
    imag = unary(Opcode.IMAG, "The imaginary part; 0 for real numbers.")
    log1p = unary(Opcode.LOG1P, "The natural logarithm of 1 + x; exact near 0.")
    logistic = unary(Opcode.LOGISTIC, "1 / (1 + exp(-x)).")
    population_count = unary(Opcode.POPULATION_COUNT, "How many of an integer's bits are set.")
    real = unary(Opcode.REAL, "The real part.")
    round_nearest_afz = unary(Opcode.ROUND_NEAREST_AFZ, "The nearest integer; halves away from zero.")
    round_nearest_even = unary(Opcode.ROUND_NEAREST_EVEN, "The nearest integer; halves to the even one.")
    rsqrt = unary(Opcode.RSQRT, "1 / sqrt(x).")
    sinh = unary(Opcode.SINH, "The hyperbolic sine.")
    tan = unary(Opcode.TAN, "The tangent, of radians.")
    square = operation(elementwise.square)
    square_f32 = operation(elementwise.square_f32)
    reciprocal = operation(elementwise.reciprocal)
    reciprocal_f32 = operation(elementwise.reciprocal_f32)

    # ---- conversions and choices

    convert_element_type = operation(elementwise.convert_element_type)
    reduce_precision = operation(elementwise.reduce_precision)
    clamp = operation(elementwise.clamp)
    select = operation(elementwise.select)

    # ---- movement of elements

    broadcast = operation(movement.broadcast)
    reshape = operation(movement.reshape)
    collapse = operation(movement.collapse)
    concat_in_dim = operation(movement.concat_in_dim)
    pad = operation(movement.pad)
    rev = operation(movement.rev)
    slice = operation(movement.slice_)
    dynamic_slice = operation(movement.dynamic_slice)
    dynamic_update_slice = operation(movement.dynamic_update_slice)
    sort = operation(movement.sort)
    transpose = operation(movement.transpose)
    trans = operation(movement.trans)

    # ---- products

    CONV_BATCH_DIMENSION = 0
    CONV_FEATURE_DIMENSION = 1
    CONV_FIRST_SPATIAL_DIMENSION = 2
    CONV_SECOND_SPATIAL_DIMENSION = 3
    CONV_KERNEL_OUTPUT_DIMENSION = 0
    CONV_KERNEL_INPUT_DIMENSION = 1
    CONV_KERNEL_FIRST_SPATIAL_DIMENSION = 2
    CONV_KERNEL_SECOND_SPATIAL_DIMENSION = 3

    create_default_conv_dimension_numbers = staticmethod(products.create_default_conv_dimension_numbers)
    create_conv_dimension_numbers = staticmethod(products.create_conv_dimension_numbers)
    dot = operation(products.dot)
    conv = operation(products.conv)
    conv_with_general_padding = operation(products.conv_with_general_padding)
    conv_with_general_dimensions = operation(products.conv_with_general_dimensions)
    conv_general = operation(products.conv_general)
    conv_general_dilated = operation(products.conv_general_dilated)

    # ---- many elements combined

    reduce = operation(reductions.reduce)
    reduce_window = operation(reductions.reduce_window)
    reduce_window_with_general_padding = operation(reductions.reduce_window_with_general_padding)
    select_and_scatter = operation(reductions.select_and_scatter)
    select_and_scatter_with_general_padding = operation(reductions.select_and_scatter_with_general_padding)
    batch_norm_training = operation(reductions.batch_norm_training)
    batch_norm_inference = operation(reductions.batch_norm_inference)
    batch_norm_grad = operation(reductions.batch_norm_grad)
    cross_replica_sum = operation(reductions.cross_replica_sum)

    # ---- tuples, computations, queues and other code

    tuple = operation(structure.tuple_)
    get_tuple_element = operation(structure.get_tuple_element)
    call = operation(structure.call)
    while_ = operation(structure.while_)
    map = operation(structure.map_)
    custom_call = operation(structure.custom_call)
    custom_call_op = operation(structure.custom_call_op)
    trace = effect(structure.trace)
    infeed = operation(structure.infeed)
    outfeed = effect(structure.outfeed)

    # ---- random numbers, from the process's state

    rng_normal = operation(structure.rng_normal)
    rng_uniform = operation(structure.rng_uniform)
    rng_bernoulli = operation(structure.rng_bernoulli)


add_operations(ComputationBuilder, SPECS.values())
