"""One element of one instruction, as an expression: the recursion that all loop nests use.

`ElementEmitter.value(instruction, index)` gives an expression for that element. The rules are in the files of the op
families. Elements are held in a type that Numba computes in: f16 and bf16 as float32 (rounded after every op, as HLO
defines), pred as a boolean, integers of less than a byte as int8 and uint8, all others as themselves. Floats of a byte
or less are held as the byte that stores them: kernels move and convert them, and compute in wider types
(`hlo/passes/expand/small_types.py` sees to that).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...hlo.analyses.forms import OpaqueConstant, is_ordinary
from ...hlo.element_type import ElementType
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import is_elementwise
from ...hlo.rules import RuleTable
from ..emitted_kernel import memory_type, pointer_of
from ..loops.expressions import Binary, Call, Expr, Name, Number, call
from ..loops.statements import PointerParameter, ScalarParameter
from ..loops.writer import Writer, boolean, cast
from .physical_index import ElementAddress, PhysicalIndex
from .physical_layouts import PhysicalLayout
from .sizes import Index, Sizes

MAX_INLINE = 72
"""An expression that is used once and has at most this many characters gets no name."""

CAST: dict[ElementType, str] = {
    **{t: memory_type(t) for t in ElementType if t is not ElementType.PRED},
    **{t: "int8" for t in ElementType if t.is_small and t.is_integral and t.is_signed},
    ElementType.F16: "float32",
    ElementType.BF16: "float32",
}
"""The dialect's cast to the type in which an element is held."""


def storage_of(element_type: ElementType) -> ElementType:
    """The element type of kernels' pointers to arrays of `element_type`: small types are stored as bytes."""
    return ElementType.U8 if element_type.is_small else element_type


def _wide_integer(element_type: ElementType) -> str:
    return "s8" if element_type.is_signed else "u8"


def rounded(element_type: ElementType, value: Expr) -> Expr:
    """The result of arithmetic in f32 rounded to f16 or bf16, or of arithmetic in 8 bits wrapped to a smaller integer;
    for other types, `value` itself."""
    if element_type.is_small and element_type.is_integral:
        wide, name = _wide_integer(element_type), element_type.value
        return call(f"{name}_to_{wide}", call(f"{wide}_to_{name}", value))
    if element_type in (ElementType.F16, ElementType.BF16):
        name = element_type.value
        return call(f"{name}_to_f32", call(f"f32_to_{name}", value))
    return value


_FALSE = Number(0)
"""The byte of a pred in memory that is false. This object is in the comparisons of `loaded` alone."""


def loaded(element_type: ElementType, value: Expr) -> Expr:
    """Converts a value from memory to the type in which it is held."""
    if element_type is ElementType.PRED:
        return Binary("!=", value, _FALSE)
    if element_type in (ElementType.F16, ElementType.BF16):
        return call(f"{element_type.value}_to_f32", value)
    if element_type.is_small and element_type.is_integral:
        return call(f"{element_type.value}_to_{_wide_integer(element_type)}", value)
    return value


def is_held_as_stored(element_type: ElementType) -> bool:
    """True if a value is held in the type that it has in memory."""
    value = Name("value", memory_type(element_type))
    return loaded(element_type, value) is value


def stored(element_type: ElementType, value: Expr) -> Expr:
    """Converts a held value to the type in memory.

    A pred that is only moved stays a byte: LLVM would test each byte of a short row, in place of a copy of the row. A
    half is stored as it was loaded or rounded, with the bits of a signaling NaN: a held bf16 is the upper half of an
    f32, and LLVM drops conversions of f16 to f32 and back, but not around a choice.
    """
    if element_type is ElementType.PRED:
        if isinstance(value, Binary) and value.right is _FALSE:
            return value.left
        return cast("uint8", value)
    if element_type in (ElementType.F16, ElementType.BF16):
        if isinstance(value, Call) and value.function == f"{element_type.value}_to_f32":
            return value.arguments[0]
        if isinstance(value, Call) and value.function == "select":
            test, *values = value.arguments
            return call("select", test, *(stored(element_type, chosen) for chosen in values))
        return call("held_to_bf16" if element_type is ElementType.BF16 else "f32_to_f16", value)
    if element_type.is_small and element_type.is_integral:
        return call(f"{_wide_integer(element_type)}_to_{element_type.value}", value)
    return value


def movable(element_type: ElementType, value: Expr) -> Expr:
    """A held value in the form in which branches give it: f16 as it is stored."""
    return stored(element_type, value) if element_type is ElementType.F16 else value


def moved(element_type: ElementType, value: Expr) -> Expr:
    """The held value that branches gave as `movable`."""
    return loaded(element_type, value) if element_type is ElementType.F16 else value


class ElementEmitter:
    """Emits elements of the instructions of one canonical fused computation into a `Writer`."""

    def __init__(self, computation: HloComputation, writer: Writer, sizes: Sizes) -> None:
        self.computation = computation
        self.writer = writer
        self.sizes = sizes
        self.scalars: list[ScalarParameter] = []
        self._scalar_names: dict[tuple[ElementType, bytes | int], Expr] = {}
        self._ordinary: dict[ElementType, bool] = {}
        """Whether the ordinary constants of a type are opaque."""
        self.pointers: dict[int, PointerParameter] = {}
        """The pointers, by the number of the fused computation's parameter."""
        self.places: dict[int, PhysicalLayout] = {}
        """The layouts, by the number of the parameter, for parameters that are not row-major."""
        self.place_index: PhysicalIndex = PhysicalIndex(writer, sizes)
        self.used: set[int] = set()
        self.spilled: dict[tuple[HloInstruction, Index], Callable[[], Expr]] = {}
        """Values that an earlier loop of the nest has left in an output, and the function that reads them back: their
        offset is computed anew in each loop."""
        self._uses = _count_uses(computation)
        self.literals = _literal_constants(computation)

    def value(self, instruction: HloInstruction, index: Index) -> Expr:
        """The element of `instruction` at `index`. Walks chains of element-wise ops without recursion."""
        here, scalars = self.writer.values(index), self.writer.values()
        values = here if instruction.shape.rank else scalars
        found = values.get(instruction)
        if found is not None:
            return found
        stack = [instruction]
        while stack:
            top = stack[-1]
            is_array = top.shape.rank
            if top in (here if is_array else scalars):
                stack.pop()
                continue
            if is_elementwise(top) and not (self.spilled and (top, index) in self.spilled):
                pending = [o for o in top.operands if o not in (here if o.shape.rank else scalars) and o is not top]
                if pending:
                    stack.extend(reversed(pending))
                    continue
            stack.pop()
            self._compute(top, index if is_array else ())
        return values[instruction]

    def _compute(self, instruction: HloInstruction, index: Index) -> None:
        spilled = self.spilled.get((instruction, index)) if self.spilled else None
        result = spilled() if spilled else ELEMENT[instruction.opcode](self, instruction, index)
        reused = self._uses.get(instruction, 0) > 1 and instruction not in self.literals and not result.is_simple
        if reused or len(result.text) > MAX_INLINE:
            result = self.writer.let(self.stem(instruction), result)
        self.writer.remember(instruction, result, index)

    def operands(self, instruction: HloInstruction, index: Index) -> list[Expr]:
        """The operands' elements at the same index (for a scalar, its only element)."""
        here, scalars = self.writer.values(index), self.writer.values()
        found = []
        for o in instruction.operands:
            is_array = o.shape.rank
            known = (here if is_array else scalars).get(o)
            found.append(self.value(o, index if is_array else ()) if known is None else known)
        return found

    def scalar(self, element_type: ElementType, value: object, *, literal: bool = False) -> Expr:
        """A scalar constant: an argument of the kernel, unless it must be a literal or cannot be an argument."""
        array = np.asarray(value, element_type.dtype)
        if element_type is ElementType.PRED:
            return boolean(bool(array))
        if element_type.is_small:
            # In the held form: a float's byte, an integer's value.
            is_byte = element_type.is_floating
            array = array.view(np.uint8) if is_byte else array.astype(np.int8 if element_type.is_signed else np.uint8)
            element_type = ElementType.S8 if element_type.is_signed and not is_byte else ElementType.U8
        if element_type.is_integral and literal:
            return cast(CAST[element_type], int(array))
        if element_type.is_complex:
            real, imag = (self.scalar(element_type.real, part) for part in (array.real, array.imag))
            return call("complex_from", real, imag)
        held = ElementType.F32 if element_type in (ElementType.F16, ElementType.BF16) else element_type
        if literal and array in _OF_FORMS:
            return cast(CAST[held], Number(float(array)))
        return self._argument((element_type, array.tobytes()), held, array.astype(held.dtype))

    def opaque(self, element_type: ElementType, constant: OpaqueConstant) -> Expr:
        """A constant that is not known here: an argument of the kernel."""
        return self._argument((element_type, constant.number), element_type, constant)

    def _argument(self, key: tuple[ElementType, bytes | int], held: ElementType, value: Any) -> Expr:
        found = self._scalar_names.get(key)
        if found is None:
            is_opaque = type(value) is OpaqueConstant
            if (is_opaque or is_ordinary(value)) and self._ordinary.setdefault(held, is_opaque) is not is_opaque:
                raise TypeError("a constant that is not known may be equal to one that is")
            name = f"c{len(self._scalar_names)}"
            self.scalars.append(ScalarParameter(name, held, value))
            found = self._scalar_names[key] = Name(name, CAST[held])
        return found

    def load(self, instruction: HloInstruction, index: Index) -> Expr:
        """The element of a parameter at `index`."""
        number = instruction.attributes.number
        self.used.add(number)
        place = self.places.get(number)
        return self.read(self.pointers[number], self.place_index.address(place, instruction, index), place)

    def read(self, pointer: PointerParameter, address: ElementAddress, place: PhysicalLayout | None) -> Expr:
        """An element of a buffer, in the type in which it is held."""
        value: Expr = pointer_of(pointer)[address.offset]
        if place is not None and address.shift is not None:
            value = cast("uint8", (cast("int64", value) >> address.shift) & ((1 << place.packed_bits) - 1))
        return loaded(pointer.element_type, value)

    @staticmethod
    def stem(instruction: HloInstruction) -> str:
        """The first part of the names of this op's results."""
        return _STEM.get(instruction.opcode, instruction.opcode.name.lower())

    def add_uses(self, computation: HloComputation) -> None:
        """Adds the uses inside a reducer to the known uses."""
        self._uses.update(_count_uses(computation))
        self.literals |= _literal_constants(computation)


ElementRule = Callable[[ElementEmitter, HloInstruction, Index], Expr]
ELEMENT: RuleTable[ElementRule] = RuleTable("emission")


def _count_uses(computation: HloComputation) -> dict[HloInstruction, int]:
    uses: dict[HloInstruction, int] = {}
    for instruction in computation.instructions:
        for operand in instruction.operands:
            uses[operand] = uses.get(operand, 0) + 1
    return uses


_STEM: dict[Opcode, str] = {
    Opcode.PARAMETER: "v",
    Opcode.EXP: "exp",
    Opcode.MULTIPLY: "mul",
    Opcode.MULHI: "upper",
    Opcode.SUBTRACT: "sub",
    Opcode.DIVIDE: "div",
    Opcode.MAXIMUM: "max",
    Opcode.MINIMUM: "min",
    Opcode.NEGATE: "neg",
    Opcode.COMPARE: "test",
    Opcode.CONVERT: "cast",
    Opcode.SHIFT_LEFT: "shifted",
    Opcode.SHIFT_RIGHT_LOGICAL: "shifted",
    Opcode.SHIFT_RIGHT_ARITHMETIC: "shifted",
    Opcode.DYNAMIC_SLICE: "slice",
    Opcode.CONCATENATE: "part",
    Opcode.SELECT: "chosen",
    Opcode.AND: "both",
    Opcode.OR: "either",
    Opcode.XOR: "mixed",
    Opcode.NOT: "inverse",
}
"""Stems of names for values; the default is the opcode's name. None may be a name of the dialect."""


@ELEMENT.register(Opcode.PARAMETER)
def _parameter(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    return e.load(instruction, index)


@ELEMENT.register(Opcode.CONSTANT)
def _constant(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    literal = instruction.attributes.literal
    if type(literal) is OpaqueConstant:
        return e.opaque(instruction.shape.element, literal)
    value = literal.array
    assert value.size == 1, "array constants are buffers of their own"
    return e.scalar(instruction.shape.element, value.reshape(()), literal=instruction in e.literals)


_BITWISE = frozenset(
    (Opcode.AND, Opcode.OR, Opcode.XOR, Opcode.SHIFT_LEFT, Opcode.SHIFT_RIGHT_LOGICAL, Opcode.SHIFT_RIGHT_ARITHMETIC)
)


_DIVISIONS = frozenset((Opcode.DIVIDE, Opcode.REMAINDER))
_OF_FORMS = (0.0, 1.0, -1.0)
"""Floats that are a part of a form (see `is_ordinary`): kernels may have them as literals."""


def _literal_constants(computation: HloComputation) -> set[HloInstruction]:
    """Masks, shift distances and divisors of integers, and the 1 of an inverse tangent, with their broadcasts. If they
    are literals, LLVM can recognise a rotation, say, and multiplies in place of a division: three times as fast as the
    division of floats that stands for one by an argument."""
    operands = {o for i in computation.instructions if i.opcode in _BITWISE for o in i.operands}
    operands |= {
        i.operands[1]
        for i in computation.instructions
        if (i.opcode in _DIVISIONS and i.shape.element.is_integral) or i.opcode is Opcode.ATAN2
    }
    sources = {b.operands[0] for b in operands if b.opcode is Opcode.BROADCAST}
    constants = {o for o in operands | sources if o.opcode is Opcode.CONSTANT}
    return constants | {b for b in operands if b.opcode is Opcode.BROADCAST and b.operands[0] in constants}
