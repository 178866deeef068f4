"""range-simplifier: integer arithmetic that cannot act for the values that it gets, in modules with loops.

A loop's counter has a range, and so have the indices computed from it: `where(i < 0, i + n, i)`, the test whether an
update is inside of the array, a clamp or a remainder have a known answer. `analyses/ranges.py` finds the ranges. A rule
here is right only where its instruction is, as other loops may have other ranges. Source: XLA's
WhileLoopTripCountAnnotator and Range (value_range.cc) for the idea; the rules are ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analyses.in_bounds import known_in_bounds, window_sizes
from ...analyses.intervals import BOOLEAN, TRANSFER, Range, compared, limits, narrowed
from ...analyses.ranges import has_loops, known_ranges
from ...builder import make_instruction
from ...ir import HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.elementwise import CompareAttributes, ComparisonDirection
from ...ops.movement import DynamicSliceAttributes, SliceAttributes
from ...shape import Shape
from ...support.records import dataclass
from ..map_inliner import apply_to_arrays
from ..patterns import binary, convert, is_progression, make_splat, reshape, splat_value
from ..rewriter import RewriteLog, apply_rules
from ..rules import RuleSet, Site, rule
from .control_flow_simplifier import ControlFlowSimplifier

Instruction = HloInstruction


def _is_integer(i: Instruction) -> bool:
    """True for integers of a whole byte or more: the others are computed in wider types."""
    element = i.shape.element_type
    return element is not None and element.is_integral and not element.is_small


def known_integer(i: Instruction, site: Site) -> Instruction | None:
    """An integer or boolean that can have only one value is that constant."""
    known = site.ranges.known.get(site.instruction)
    if known is None or not known.is_single or splat_value(i) is not None:
        return None
    return make_splat(known.low, i.shape)


def known_after_loop(i: Instruction, site: Site) -> Instruction | None:
    """An element of a loop's or a conditional's result that can have only one value is that constant: a counter after
    its loop."""
    computed = i.operands[0].opcode in (Opcode.WHILE, Opcode.CONDITIONAL)
    return known_integer(i, site) if computed and limits(i.shape) is not None else None


def bound_without_effect(i: Instruction, site: Site) -> Instruction | None:
    """min(a, b) = a if a is never larger than b; max alike. For integers."""
    if not _is_integer(i):
        return None
    a, b = site.range(0), site.range(1)
    if a.high <= b.low:
        return i.operands[0 if i.opcode is Opcode.MINIMUM else 1]
    return i.operands[1 if i.opcode is Opcode.MINIMUM else 0] if b.high <= a.low else None


def clamp_without_effect(i: Instruction, site: Site) -> Instruction | None:
    """clamp(a, x, b) = x if x is always between a and b; min(x, b) if it is never below a; max(a, x) if it is never
    above b, nor is a. For integers."""
    if not _is_integer(i):
        return None
    lowest, x, highest = i.operands
    a, known, b = (site.range(k) for k in range(3))
    if a.high <= known.low and known.high <= b.low:
        return x
    if a.high <= known.low and highest.shape.dimensions == i.shape.dimensions:
        return binary(Opcode.MINIMUM, x, highest)
    if known.high <= b.low and a.high <= b.low and lowest.shape.dimensions == i.shape.dimensions:
        return binary(Opcode.MAXIMUM, lowest, x)
    return None


def abs_without_effect(i: Instruction, site: Site) -> Instruction | None:
    """abs(x) = x if x is never negative. For integers."""
    return i.operands[0] if _is_integer(i) and site.range(0).low >= 0 else None


def mask_without_effect(i: Instruction, site: Site) -> Instruction | None:
    """and(x, 2^k - 1) = x if x is in [0, 2^k - 1]. For integers."""
    if not _is_integer(i):
        return None
    for x, mask in ((0, 1), (1, 0)):
        bits = site.range(mask)
        known = site.range(x)
        if bits.is_single and bits.low & (bits.low + 1) == 0 and known.low >= 0 and known.high <= bits.low:
            return i.operands[x]
    return None


def remainder_of_little(i: Instruction, site: Site) -> Instruction | None:
    """x % d = x if x is closer to 0 than d. For integers."""
    if not _is_integer(i):
        return None
    x, d = site.range(0), site.range(1)
    if d.low <= 0 <= d.high:
        return None
    return i.operands[0] if max(-x.low, x.high) < min(abs(d.low), abs(d.high)) else None


def remainder_by_mask(i: Instruction, site: Site) -> Instruction | None:
    """x % 2^k = and(x, 2^k - 1) if x is never negative. For integers."""
    if not _is_integer(i) or _power_of_two(site.range(1)) is None or site.range(0).low < 0:
        return None
    return binary(Opcode.AND, i.operands[0], make_splat(site.range(1).low - 1, i.shape))


def divide_by_shift(i: Instruction, site: Site) -> Instruction | None:
    """x / 2^k = x >> k if x is never negative. For integers."""
    power = _power_of_two(site.range(1)) if _is_integer(i) else None
    if power is None or site.range(0).low < 0:
        return None
    return binary(Opcode.SHIFT_RIGHT_LOGICAL, i.operands[0], make_splat(power, i.shape))


def _power_of_two(known: Range) -> int | None:
    """k for the number 2^k."""
    n = known.low
    return n.bit_length() - 1 if known.is_single and n > 0 and n & (n - 1) == 0 else None


def remainder_by_subtraction(i: Instruction, site: Site) -> Instruction | None:
    """x % d = select(x < d, x, x - d) for a constant d, if x is in [0, 2 d). For integers."""
    if not _is_integer(i):
        return None
    x, d = site.range(0), site.range(1)
    if not d.is_single or x.low < 0 or x.high >= 2 * d.low:
        return None
    value, limit = i.operands[0], make_splat(d.low, i.shape)
    below = make_instruction(Opcode.COMPARE, (value, limit), CompareAttributes(ComparisonDirection.LT))
    return make_instruction(Opcode.SELECT, (below, value, binary(Opcode.SUBTRACT, value, limit)))


def convert_there_and_back(i: Instruction, site: Site) -> Instruction | None:
    """convert(convert(x)) is one conversion if the type between can hold the values of x. For integers."""
    (middle,), (old,) = i.operands, site.instruction.operands
    if middle.opcode is not Opcode.CONVERT or old.opcode is not Opcode.CONVERT or middle.name != old.name:
        return None
    source, whole = site.ranges.of(old.operands[0]), limits(old.shape)
    if source is None or whole is None or limits(i.shape) is None or not _is_integer(old):
        return None
    return convert(middle.operands[0], i.shape.element) if whole.contains(source) else None


def slice_of_progression(i: Instruction, site: Site) -> Instruction | None:
    """One element of a range of numbers is computed from its index, if that is known to be in range."""
    x, *starts = i.operands
    if i.shape.num_elements != 1 or not is_progression(x) or x.shape.rank != 1:
        return None
    if not known_in_bounds(site.instruction, site.ranges):
        return None
    return reshape(_element_at(x, starts[0]), i.shape.dimensions)


def _element_at(x: Instruction, index: Instruction) -> Instruction:
    """The element of a range of numbers at a scalar index."""
    if x.opcode is Opcode.IOTA:
        return convert(index, x.shape.element)
    scalar = Shape.array(x.shape.element)
    if x.opcode is Opcode.CONVERT:
        return convert(_element_at(x.operands[0], index), x.shape.element)
    known = [(o, splat_value(o)) for o in x.operands]
    a, b = (_element_at(o, index) if k is None else make_splat(k, scalar) for o, k in known)
    return binary(x.opcode, a, b)


def test_that_follows(i: Instruction, site: Site) -> Instruction | None:
    """and(x < a, x != b) = x < a if x != b follows from it for the values that x can have. For comparisons of integers
    with constants: tests of a remainder are such."""
    for p, q in ((0, 1), (1, 0)):
        first, second = (_test(site.instruction.operands[k], site) for k in (p, q))
        if first.opcode is not Opcode.COMPARE or second.opcode is not Opcode.COMPARE:
            return None
        if first.operands[0] is not second.operands[0]:
            return None
        x, a, b = (site.ranges.of(o) for o in (first.operands[0], first.operands[1], second.operands[1]))
        if x is None or a is None or b is None:
            return None
        where = narrowed(first.attributes.direction, x, a)
        if where is not None and compared(second.attributes.direction, where, b) == (1, 1):
            return i.operands[p]
    return None


def _test(p: Instruction, site: Site) -> Instruction:
    """The boolean that a comparison with a known boolean is equal to."""
    while p.opcode is Opcode.COMPARE and limits(p.operands[0].shape) == BOOLEAN:
        known, direction = site.ranges.of(p.operands[1]), p.attributes.direction
        if (direction, known) not in ((ComparisonDirection.NE, (0, 0)), (ComparisonDirection.EQ, (1, 1))):
            break
        p = p.operands[0]
    return p


def gather_of_one(i: Instruction, site: Site) -> Instruction | None:
    """A gather of one slice is a dynamic-slice: both clamp the start so that the slice fits."""
    array, indices = i.operands
    a = i.attributes
    count = len(a.start_index_map)
    if indices.shape.num_elements != count or a.operand_batching_dims or 0 in a.slice_sizes or not count:
        return None
    starts = _starts(indices, a.start_index_map, array.shape.rank)
    taken = make_instruction(Opcode.DYNAMIC_SLICE, (array, *starts), DynamicSliceAttributes(a.slice_sizes))
    return reshape(taken, i.shape.dimensions)


def _starts(indices: Instruction, dimensions: Sequence[int], rank: int) -> list[Instruction]:
    """One index into an array as scalars, one for each dimension; those that it does not name are 0."""
    count = len(dimensions)
    line = reshape(indices, (count,))
    zero = make_splat(0, Shape.array(indices.shape.element))
    starts = []
    for d in range(rank):
        if d not in dimensions:
            starts.append(zero)
            continue
        k = dimensions.index(d)
        one = make_instruction(Opcode.SLICE, (line,), SliceAttributes((k,), (k + 1,), (1,))) if count > 1 else line
        starts.append(reshape(one, ()))
    return starts


def scatter_of_one(i: Instruction, site: Site) -> Instruction | None:
    """A scatter of one window that is known to fit is a dynamic-update-slice: out of range, a scatter drops the window,
    and a dynamic-update-slice moves it."""
    if len(i.operands) != 3 or i.attributes.to_apply.root.shape.is_tuple:
        return None
    array, indices, update = i.operands
    a = i.attributes
    dimensions = a.scatter_dims_to_operand_dims
    if indices.shape.num_elements != len(dimensions) or a.input_batching_dims or not update.shape.num_elements:
        return None
    if not dimensions or len(known_in_bounds(site.instruction, site.ranges)) < len(dimensions):
        return None
    window = window_sizes(i)
    starts = _starts(indices, dimensions, array.shape.rank)
    before = make_instruction(Opcode.DYNAMIC_SLICE, (array, *starts), DynamicSliceAttributes(window))
    combined = apply_to_arrays(a.to_apply, (before, reshape(update, window)), window)
    return None if combined is None else make_instruction(Opcode.DYNAMIC_UPDATE_SLICE, (array, combined, *starts))


_O = Opcode
_NOT_COMPUTED = frozenset({_O.CONSTANT, _O.IOTA, _O.BROADCAST, _O.OPT_BARRIER})
"""A constant already, or a sign to leave a value alone."""

RULES = RuleSet(
    (
        rule(known_integer, *(o for o in TRANSFER if o not in _NOT_COMPUTED), sees_users=True),
        rule(known_after_loop, _O.GET_TUPLE_ELEMENT, sees_users=True, operands={_O.WHILE, _O.CONDITIONAL}),
        rule(bound_without_effect, _O.MAXIMUM, _O.MINIMUM, sees_users=True),
        rule(clamp_without_effect, _O.CLAMP, sees_users=True),
        rule(abs_without_effect, _O.ABS, sees_users=True),
        rule(mask_without_effect, _O.AND, sees_users=True),
        rule(remainder_of_little, _O.REMAINDER, sees_users=True),
        rule(remainder_by_mask, _O.REMAINDER, sees_users=True),
        rule(remainder_by_subtraction, _O.REMAINDER, sees_users=True),
        rule(divide_by_shift, _O.DIVIDE, sees_users=True),
        rule(convert_there_and_back, _O.CONVERT, sees_users=True, operands={_O.CONVERT}),
        rule(test_that_follows, _O.AND, sees_users=True, operands={_O.COMPARE}),
        rule(slice_of_progression, _O.DYNAMIC_SLICE, sees_users=True),
        rule(gather_of_one, _O.GATHER, sees_users=True),
        rule(scatter_of_one, _O.SCATTER, sees_users=True),
    )
)

SUNK = ControlFlowSimplifier().rules.only({"constant_state"})
"""These come first: the constants that a loop carries must be seen in its body."""


@dataclass(frozen=True, slots=True)
class RangeSimplifier:
    """One walk over all computations of a module with loops; a module without loops is left as it is."""

    name: str = "range-simplifier"
    rules: RuleSet = RULES

    def __call__(self, module: HloModule) -> HloModule:
        return self.rewrite(module, RewriteLog())

    def rewrite(self, module: HloModule, log: RewriteLog) -> HloModule:
        if not has_loops(module):
            return module
        module = apply_rules(module, SUNK, log)
        return apply_rules(module, self.rules, log, ranges=known_ranges(module))
