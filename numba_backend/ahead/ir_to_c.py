"""Translate a function in LLVM IR, as llvmlite holds it, to a C function. Values become variables, blocks labels.

Only what the definitions of `runtime/math/` and `runtime/dialect*.py` write is translated.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from typing import Any, Protocol

import llvmlite.ir as llir

from ...hlo.errors import UnsupportedError

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "shl": "<<", "lshr": ">>", "udiv": "/",
    "urem": "%", "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/",
}  # fmt: skip
_RELATIONS = {"eq": "==", "ne": "!=", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}


class Names(Protocol):
    """The names that a translation needs: C types, other functions, and tables."""

    def of_type(self, type_: Any) -> str:
        """The C type of an LLVM type. Integers are unsigned, so that they wrap."""

    def callee(self, function: Any) -> str:
        """The name of a function that another one calls."""

    def table(self, array: Any) -> str:
        """The name of a constant array of the module."""

    def add(self, name: str, text: str) -> None:
        """A function that is written in C itself."""


def constant(value: Any) -> str:
    """A constant of LLVM IR in C."""
    kind, number = value.type, value.constant
    if isinstance(kind, llir.IntType):
        if kind.width == 1:
            return "true" if number else "false"
        if kind.width == 128:
            if not -(2**63) <= number < 2**64:
                raise UnsupportedError(f"the constant {number} has no form in C")
            return f"(uint128){number % 2**64}u"
        number %= 1 << kind.width
        return f"UINT64_C({number})" if kind.width == 64 else f"(uint{kind.width}_t){number}u"
    if isinstance(kind, (llir.FloatType, llir.DoubleType, llir.HalfType)):
        return float_literal(number, not isinstance(kind, llir.DoubleType))
    raise UnsupportedError(f"a constant of {kind} has no form in C")


def float_literal(number: float, single: bool) -> str:
    """A number as C writes it, exactly."""
    suffix = "f" if single else ""
    if single:
        number = struct.unpack("<f", struct.pack("<f", number))[0]
    if math.isnan(number):
        return "NAN"
    if math.isinf(number):
        return "-INFINITY" if number < 0 else "INFINITY"
    if number == int(number) and abs(number) < 2**24:
        return f"{'-' if math.copysign(1, number) < 0 else ''}{abs(int(number))}.0{suffix}"
    return number.hex().replace("0000000p", "p") + suffix


def _used(instructions: list[Any]) -> set[int]:
    """The identities of the values on which the end of a function depends."""
    found: set[int] = set()
    waiting = [i for i in instructions if isinstance(i, llir.instructions.Terminator)]
    while waiting:
        for operand in _operands(waiting.pop()):
            if id(operand) not in found:
                found.add(id(operand))
                if isinstance(operand, llir.Instruction):
                    waiting.append(operand)
    return found


def _operands(instruction: Any) -> list[Any]:
    """The values that an instruction reads."""
    if instruction.opname == "phi":
        return [value for value, _ in instruction.incomings]
    if instruction.opname == "call":
        return list(instruction.args)
    return list(instruction.operands)


class Translation:
    """One function. Values are C variables; blocks are labels."""

    def __init__(self, functions: Names, function: Any, name: str, seen: list[str] | None = None) -> None:
        """`seen`: the C types, without a sign, of the arguments and of the result for callers, where LLVM's types
        differ."""
        self._functions = functions
        self._seen = seen
        self._function = function
        self._name = name
        self._names: dict[int, str] = {}
        self._phis: dict[int, list[tuple[Any, str]]] = {}
        self._declared: list[str] = []

    def text(self) -> str:
        function = self._function
        arguments = []
        kinds = [*(argument.type for argument in function.args), function.function_type.return_type]
        given = self._seen or [self._functions.of_type(kind) for kind in kinds]
        used = _used([i for block in function.blocks for i in block.instructions])
        for number, argument in enumerate(function.args):
            self._names[id(argument)] = f"a{number}"
            own = self._functions.of_type(argument.type)
            if given[number] != own and id(argument) in used:
                arguments.append(f"{given[number]} x{number}")
                self._declared.append(f"const {own} a{number} = ({own})x{number};")
            else:
                arguments.append(f"{given[number]} a{number}")
                if id(argument) not in used:
                    self._declared.append(f"(void)a{number};")
        blocks = list(function.blocks)
        is_straight = len(blocks) == 1
        for block in blocks:
            for instruction in block.instructions:
                if instruction.opname == "phi":
                    name = self._fresh(instruction)
                    self._declared.append(f"{self._functions.of_type(instruction.type)} {name}, next_{name};")
                    for value, source in instruction.incomings:
                        self._phis.setdefault(id(source), []).append((value, name))
        lines: list[str] = []
        for number, block in enumerate(blocks):
            if not is_straight:
                if number:
                    lines.append(f"{self._label(block)}:;")
                else:
                    self._label(block)
            for instruction in block.instructions:
                if isinstance(instruction, llir.instructions.Terminator) or id(instruction) in used:
                    lines.extend(self._statement(instruction, block, is_straight))
        body = "".join(f"    {line}\n" for line in [*self._declared, *lines])
        return f"static inline {given[-1]} {self._name}({', '.join(arguments) or 'void'}) {{\n{body}}}\n"

    def _label(self, block: Any) -> str:
        return "block_" + re.sub(r"\W", "_", block.name)

    def _fresh(self, value: Any) -> str:
        return self._names.setdefault(id(value), f"v{len(self._names)}")

    def _value(self, value: Any) -> str:
        name = self._names.get(id(value))
        if name is not None:
            return name
        if isinstance(value, llir.Constant):
            return constant(value)
        if isinstance(value, llir.GlobalVariable):
            return f"({self._functions.of_type(value.type)}){self._functions.table(value)}"
        raise UnsupportedError(f"{self._name}: {value} has no form in C")

    def _statement(self, instruction: Any, block: Any, is_straight: bool) -> Iterator[str]:
        match instruction.opname:
            case "phi":
                return
            case "ret":
                yield f"return {self._value(instruction.operands[0])};"
            case "br" if len(instruction.operands) == 1:
                yield from self._leave(block)
                yield f"goto {self._label(instruction.operands[0])};"
            case "br":
                test, yes, no = instruction.operands
                yield from self._leave(block)
                yield f"if ({self._value(test)}) goto {self._label(yes)}; else goto {self._label(no)};"
            case _:
                kind, text = self._functions.of_type(instruction.type), self._expression(instruction)
                name = self._fresh(instruction)
                if is_straight:
                    yield f"const {kind} {name} = {text};" if not kind.endswith("*") else f"{kind}{name} = {text};"
                else:
                    self._declared.append(f"{kind} {name};")
                    yield f"{name} = {text};"

    def _leave(self, block: Any) -> Iterator[str]:
        """The values that phis get from this block: all are read before one is written."""
        moves = self._phis.get(id(block), [])
        for value, name in moves:
            yield f"next_{name} = {self._value(value)};"
        for _, name in moves:
            yield f"{name} = next_{name};"

    def _expression(self, instruction: Any) -> str:
        operation = instruction.opname
        operands = instruction.operands
        kind = self._functions.of_type(instruction.type)
        if operation in _BINARY:
            a, b = (self._value(o) for o in operands)
            if operation in ("shl", "lshr"):
                b = self._shift(operands[1])
            text = f"{a} {_BINARY[operation]} {b}"
            if isinstance(instruction.type, llir.IntType) and instruction.type.width < 32:
                if operation in ("mul", "shl"):  # C promotes to int, and a product of two uint16_t overflows
                    text = f"(uint32_t){text}"
                return f"({kind})({text})"
            return text
        match operation:
            case "ashr" | "sdiv" | "srem":
                a, b = (f"({self._signed(o.type)}){self._value(o)}" for o in operands)
                if operation == "ashr":
                    b = self._shift(operands[1])
                sign = {"ashr": ">>", "sdiv": "/", "srem": "%"}[operation]
                return f"({kind})({a} {sign} {b})"
            case "fneg":
                return f"-{self._value(operands[0])}"
            case "icmp":
                return self._comparison(instruction)
            case "fcmp":
                return self._float_comparison(instruction)
            case "select":
                return "{} ? {} : {}".format(*(self._value(o) for o in operands))
            case "bitcast":
                return self._bits(self._functions.of_type(operands[0].type), kind, self._value(operands[0]))
            case "zext" | "trunc" | "fpext" | "fptrunc" | "uitofp" | "fptoui":
                if kind == "bool":
                    return f"{self._value(operands[0])} & 1"
                return f"({kind}){self._value(operands[0])}"
            case "sext" | "sitofp":
                return f"({kind})({self._signed(operands[0].type)}){self._value(operands[0])}"
            case "fptosi":
                return f"({kind})({self._signed(instruction.type)}){self._value(operands[0])}"
            case "call":
                name = self._functions.callee(instruction.callee)
                return f"{name}({', '.join(self._value(o) for o in instruction.args)})"
            case "extractvalue":
                return f"{self._value(instruction.aggregate)}.part{instruction.indices[0]}"
            case "insertvalue":
                return self._inserted(instruction, kind)
            case "load":
                return f"*{self._value(operands[0])}"
            case "getelementptr":
                return f"{self._value(operands[0])} + {self._value(operands[-1])}"
        raise UnsupportedError(f"LLVM's instruction {operation} has no form in C")

    def _shift(self, amount: Any) -> str:
        """By how much to shift. In LLVM a shift by the width or more gives a value that is not used; in C it is
        undefined."""
        text = self._value(amount)
        return text if isinstance(amount, llir.Constant) else f"({text} & {amount.type.width - 1})"

    def _inserted(self, instruction: Any, kind: str) -> str:
        whole, part = instruction.operands
        if isinstance(whole, llir.Constant):
            old = ["0", "0"]
        else:
            name = self._value(whole)
            old = [f"{name}.part0", f"{name}.part1"]
        old[instruction.indices[0]] = self._value(part)
        return f"({kind}){{{', '.join(old)}}}"

    def _signed(self, type_: Any) -> str:
        name = self._functions.of_type(type_)
        if name == "bool":
            raise UnsupportedError("a signed bit has no form in C")
        return name.removeprefix("u")

    def _comparison(self, instruction: Any) -> str:
        relation = instruction.op
        a, b = (self._value(o) for o in instruction.operands)
        if relation[0] == "s" and relation[1:] in _RELATIONS:
            signed = self._signed(instruction.operands[0].type)
            a, b = f"({signed}){a}", f"({signed}){b}"
        return f"{a} {_RELATIONS[relation.lstrip('su')]} {b}"

    def _float_comparison(self, instruction: Any) -> str:
        relation = instruction.op
        a, b = (self._value(o) for o in instruction.operands)
        if relation == "uno":
            return f"{a} != {a} || {b} != {b}"
        if relation != "une" and relation[0] != "o":
            raise UnsupportedError(f"LLVM's comparison {relation} has no form in C")
        return f"{a} {_RELATIONS[relation[1:]]} {b}"

    def _bits(self, source: str, target: str, value: str) -> str:
        name = f"bits_{re.sub(r'[^a-z0-9]', '', source)}_{re.sub(r'[^a-z0-9]', '', target)}"
        body = f"{{ {target} b; memcpy(&b, &a, sizeof b); return b; }}"
        self._functions.add(name, f"static inline {target} {name}({source} a) {body}\n")
        return f"{name}({value})"
