"""Translate a loop program to LLVM IR in a single walk over its nodes.

Numba's front end (bytecode, data flow, type inference to a fixed point, liveness, lowering) takes 70 ms for a kernel of
25 lines. Importing it takes as long as compiling ten of them. Kernels do not need its generality. In a loop program
every variable has one type, which its nodes tell, and operators.py knows what each operation means for the types of its
operands.

    acc = float32(0)                          slot for acc: float32
    for j in range(columns):                  counter from 0 to columns, nothing else
        acc = reduce_add(acc, x[i * columns + j])      getitem(float32*, int64) -> float32, ...

Semantics and types are Numba's: literals are int64 and float64, operands are promoted as Numba promotes them. A program
raises `Refused` if its types differ from these rules, or if only Numba's type inference can handle it; then frontend.py
sends the kernel through Numba itself.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import llvmlite.ir as llir

from ..loops.expressions import Binary, Call, Expr, Load, Name, Number, Unary
from ..loops.lanes import statements_of, trip_count
from ..loops.statements import (
    Assign,
    Augment,
    Block,
    Break,
    Comment,
    Continue,
    Evaluate,
    For,
    If,
    LocalArray,
    LoopProgram,
    Return,
    Statement,
    Store,
    While,
    expressions_of,
    walk,
)
from ..loops.vectorized_calls import LONG
from ..machine import interleaved
from .block_moves import write_streamed, write_transpose
from .dialect_define import Cast, DialectFunction, Kind
from .dialect_memory import MOST_ELEMENTS, stack_array
from .lane_loops import LaneWriter, Scalar, Vectors, multiplies_words
from .llvm_values import allow_contraction, cast, constant, truth, value_type
from .loop_hints import LoopHints
from .math.outlined import OutlinedFunction
from .math.slow_path import add_attribute
from .math.value import call_intrinsic
from .operators import operation
from .repeated_sections import Section, repeated_sections
from .row_ends import RowEnd, row_end
from .single_assignment import assigned_once

_BINARY: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
    ">>": operator.rshift, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_UNARY: dict[str, Callable[..., Any]] = {"-": operator.neg, "~": operator.invert, "not": operator.not_}

_LITERALS = {int: "int64", float: "float64", bool: "bool"}

_I32, _I64 = llir.IntType(32), llir.IntType(64)
_MASKS = frozenset(("avx512vl", "avx512bw"))
"""Processors with these features store vectors under masks."""


class Refused(Exception):
    """The kernel uses something that needs Numba itself."""


class Value(NamedTuple):
    """A type, and an LLVM value of that type."""

    type: str
    value: Any


class _Loop(NamedTuple):
    next: Any
    end: Any


class OnePass:
    """The lowering of one kernel to LLVM IR."""

    def __init__(
        self, scope: dict[str, Any], module: Any, features: frozenset[str] = frozenset(), register: int = 0,
        of_sections: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        """`features`: of the processor, in LLVM's words; only those may be used that are named. `register`: pointers do
        not alias, and vectors have so many bytes; 0: loops over lanes are ranges. `of_sections`: pointers do not
        alias, and functions that repeated sections become have these attributes; None: no section becomes one."""
        self._scope = scope
        self._features = features
        self._register = register
        self._module = module
        self._types: dict[str, str] = {}
        self._slots: dict[str, Any] = {}
        """Memory of variables."""
        self._values: dict[str, Any] = {}
        """The values of those that need none: single_assignment.py."""
        self._once: frozenset[str] = frozenset()
        self._loops: list[_Loop] = []
        self._hints = LoopHints(module, interleaved(register, features))
        self._masks = features >= _MASKS
        self._repeated: dict[str, bool] = {}
        """Functions that the program calls often, and whether loops do."""
        self._words = False
        """The program multiplies words."""
        self._written: dict[tuple[str, Any], Any] = {}
        """Operations and sections that are functions of the module, by name or text, and types."""
        self._result: str | None = None
        self._of_sections = of_sections
        self._sections: dict[int, Section] = {}
        self._streams = False
        """Some stores are non-temporal."""

    def lower(self, program: LoopProgram, parameters: Sequence[str], result: str | None) -> Any:
        """Lower a program to an internal LLVM function `body` of the same parameters; `result` is a type or None."""
        names = program.parameters
        if len(names) != len(parameters):
            raise Refused(f"the function takes {len(names)} arguments, {len(parameters)} parameters are given")
        kinds = [value_type(type_) for type_ in parameters]
        returned = llir.VoidType() if result is None else value_type(result)
        function = llir.Function(self._module, llir.FunctionType(returned, kinds), "body")
        function.linkage = "internal"
        self._entry = llir.IRBuilder(function.append_basic_block("entry"))
        self._builder = llir.IRBuilder(function.append_basic_block("start"))
        self._result = result
        self._hints.parameters = frozenset(names)
        self._once = assigned_once(program)
        for name, type_, value in zip(names, parameters, function.args):
            value.name = name
            self._assign(name, Value(type_, value))
        start = self._builder.block
        self._repeated = _often_called(program)
        self._words = multiplies_words(program)
        if self._of_sections is not None and not self._words:
            self._sections = repeated_sections(program)
        self._suite(program.body)
        if not self._builder.block.is_terminated:
            if result is not None:
                raise Refused("the end without a return")
            if self._streams:
                self._builder.fence("seq_cst")
            self._builder.ret_void()
        self._entry.position_at_end(self._entry.block)
        self._entry.branch(start)
        self._hints.finish()
        allow_contraction(self._module)
        return function

    # Statements

    def _suite(self, statements: Block) -> None:
        if not self._sections:
            for statement in statements:
                if self._builder.block.is_terminated:
                    return
                _STATEMENTS[type(statement)](self, statement)
            return
        written = 0
        for number, statement in enumerate(statements):
            if self._builder.block.is_terminated:
                return
            section = self._sections.get(id(statement))
            if section is not None:
                self._call_section(section)
                written = number + len(section.block)
            elif number >= written:
                _STATEMENTS[type(statement)](self, statement)

    def _call_section(self, section: Section) -> None:
        """A section that occurs again: a call of a function of the module, which the first one writes."""
        arguments = [self._load(name) for name in section.free]
        key = section.key, tuple([argument.type for argument in arguments])
        own = self._written.get(key)
        if own is None:
            kinds = [argument.value.type for argument in arguments]
            name = f"section_{len(self._written)}"
            own = llir.Function(self._module, llir.FunctionType(llir.VoidType(), kinds), name)
            own.linkage = "internal"
            own.attributes.add("noinline")
            for attribute in self._of_sections or ():
                add_attribute(own, attribute)
            self._written[key] = own
            self._write_section(section, own)
        self._builder.call(own, [argument.value for argument in arguments])

    def _write_section(self, section: Section, own: Any) -> None:
        kept = self._entry, self._builder, self._types, self._values, self._slots, self._loops
        self._entry = llir.IRBuilder(own.append_basic_block("entry"))
        self._builder = llir.IRBuilder(own.append_basic_block("start"))
        start = self._builder.block
        self._types, self._values, self._slots, self._loops = {}, {}, {}, []
        for name, argument in zip(section.free, own.args):
            argument.name = name.name
            if name.type.endswith("*"):
                argument.add_attribute("noalias")
            self._types[name.name], self._values[name.name] = name.type, argument
        self._suite(section.block[1:])
        self._builder.ret_void()
        self._entry.position_at_end(self._entry.block)
        self._entry.branch(start)
        self._entry, self._builder, self._types, self._values, self._slots, self._loops = kept

    def _assign(self, name: str, value: Value) -> None:
        type_ = self._types.get(name)
        if type_ is None:
            self._types[name] = value.type
            if name in self._once:
                self._values[name] = value.value
                return
            self._slots[name] = self._slot(value.value.type, name=name)
        elif type_ != value.type:
            raise Refused(f"{name} is both {type_} and {value.type}")
        self._builder.store(value.value, self._slots[name])

    def _assign_to(self, target: Name, value: Value) -> None:
        if value.type != target.type:
            raise Refused(f"{target.name} is {value.type} by Numba's rules and {target.type} by the program's")
        self._assign(target.name, value)

    def _assignment(self, node: Assign) -> None:
        values = [self._expression(value) for value in node.values]
        if any(value.type.endswith("*") for value in values):
            self._register = 0  # another name for a pointer
        for target, value in zip(node.targets, values, strict=True):
            self._assign_to(target, value)

    def _local_array(self, node: LocalArray) -> None:
        element = self._scope.get(node.dtype)
        if not isinstance(element, Cast) or not 0 < node.count <= MOST_ELEMENTS:
            raise Refused("this local array")
        self._hints.local_array(node.name.name, node.count)
        memory = stack_array(self._builder, node.count, value_type(element.type))
        self._assign_to(node.name, Value(element.type + "*", memory))

    def _augmented(self, node: Augment) -> None:
        old = self._load(node.target)
        self._assign(node.target.name, self._call(_BINARY[node.op], old, self._expression(node.value)))

    def _store(self, node: Store) -> None:
        value = self._expression(node.value)
        self._call(operator.setitem, self._load(node.pointer), self._expression(node.index), value)

    def _for(self, node: For) -> None:
        """The loop has a separate counter, because the body may assign to the loop variable."""
        if node.kind in ("lanes", "streamed") and self._register:
            self._in_vectors(node)
            return
        bounds = [self._expression(bound) for bound in (node.start, node.stop) if bound is not None]
        if any(bound.type != "int64" for bound in bounds):
            raise Refused("a range of other than int64")
        if not node.step:
            raise Refused("a step of zero")
        first = bounds[0].value if len(bounds) > 1 else llir.Constant(_I64, 0)
        last = bounds[-1].value
        end = row_end(node, self._register) if self._masks and self._register else None
        if end is None:
            self._range(node, first, last)
            return
        whole, left = self._parts_of_row(first, last, end)
        middle = self._builder.add(first, whole, flags=("nsw",))
        self._range(node, first, middle)
        for target in (node.variable, *(t for s in node.body if isinstance(s, Assign) for t in s.targets)):
            if target.name in self._once:
                del self._types[target.name]  # the body is written again
        self._row_end(node, middle, left, end.lanes)

    def _range(self, node: For, first: Any, last: Any) -> None:
        with self._counting(node, first, last, node.step, partial(self._hints.of, node)) as (value, next_, end):
            self._body(node, value, next_, end)

    @contextmanager
    def _counting(
        self, node: For, first: Any, last: Any, step: int, hints: Callable[[Any], Any]
    ) -> Iterator[tuple[Any, Any, Any]]:
        """A loop from `first` to before `last`, whose body is written inside of the context: the counter, the block of
        the next iteration, and the block after the loop. `hints`: gives the metadata, for the group of accesses."""
        counter, builder = self._slot(first.type), self._builder
        head, body, next_, end = (self._block(name) for name in ("for", "do", "next", "done"))
        builder.store(first, counter)
        builder.branch(head)
        builder.position_at_end(head)
        value = builder.load(counter)
        builder.cbranch(builder.icmp_signed("<" if step > 0 else ">", value, last), body, end)
        builder.position_at_end(body)
        yield value, next_, end
        group = self._hints.group(body, next_) if node.kind == "independent" else None
        builder.position_at_end(next_)
        builder.store(builder.add(builder.load(counter), llir.Constant(first.type, step), flags=("nsw",)), counter)
        back = builder.branch(head)
        back.set_metadata("llvm.loop", hints(group))
        builder.position_at_end(end)

    @contextmanager
    def _far_apart(self, loop: For) -> Iterator[None]:
        """The distances between elements are at least one, so LLVM need not ask whether they are one (loop_hints.py):
        where they are less, there are no elements, or one."""
        one = llir.Constant(_I64, 1)
        before = {name: value for name in self._hints.strides(loop) if (value := self._values.get(name)) is not None}
        for name, value in before.items():
            if self._types[name] == "int64":
                self._values[name] = call_intrinsic(self._builder, "llvm.smax.i64", _I64, value, one)
        yield
        self._values.update(before)

    def _parts_of_row(self, first: Any, last: Any, end: RowEnd) -> tuple[Any, Any]:
        """How many elements of a row are computed in whole vectors, and how many under a mask. LLVM sees that the first
        number is a multiple, unless it may be the whole row."""
        builder, zero = self._builder, llir.Constant(_I64, 0)
        count = builder.sub(last, first)
        count = builder.select(builder.icmp_signed(">", count, zero), count, zero)
        whole = builder.and_(count, llir.Constant(_I64, -end.lanes))
        if end.least > 1:
            few = builder.icmp_signed("<", builder.sub(count, whole), llir.Constant(_I64, end.least))
            whole = builder.select(few, count, whole)
        return whole, builder.sub(count, whole)

    def _row_end(self, node: For, first: Any, left: Any, lanes: int) -> None:
        """The last elements of a row, as a vector under a mask. Lanes have numbers of 32 bits: a comparison of 64 bits
        makes two masks of a vector of f32."""
        builder, some, after = self._builder, self._block("some"), self._block("after")
        left, none = builder.trunc(left, _I32), llir.Constant(_I32, 0)
        builder.cbranch(builder.icmp_unsigned("!=", left, none), some, after)
        builder.position_at_end(some)
        hints = partial(self._hints.of_row_end, lanes)
        with self._counting(node, none, llir.Constant(_I32, lanes), 1, hints) as (lane, next_, end):
            inside = self._block("inside")
            builder.cbranch(builder.icmp_unsigned("<", lane, left), inside, next_)
            builder.position_at_end(inside)
            self._body(node, builder.add(first, builder.zext(lane, _I64), flags=("nsw",)), next_, end)
        self._go(after)
        builder.position_at_end(after)

    def _body(self, node: For, value: Any, next_: Any, end: Any) -> None:
        self._assign_to(node.variable, Value("int64", value))
        self._loops.append(_Loop(next_, end))
        with self._far_apart(node):
            self._suite(node.body)
        self._loops.pop()
        self._go(next_)

    def _in_vectors(self, node: For) -> None:
        """A loop over lanes, as instructions of vectors."""
        steps = statements_of(node.body)
        loops = [node, *(step for step in steps if isinstance(step, For))]
        names = [loop.variable.name for loop in loops]
        with self._counters(names) as scalar:
            if len(loops) > 1:
                write_transpose(self._builder, node, self._register, scalar)
            elif node.kind == "streamed":
                write_streamed(self._builder, node, self._register, scalar)
                self._streams = True
            else:
                self._lanes(node.variable.name, trip_count(node), steps, scalar)
        for name in names:
            self._assign(name, Value("int64", constant("int64", trip_count(node) - 1)))

    def _lanes(self, name: str, count: int, steps: list[Statement], scalar: Scalar) -> None:
        vectors = Vectors(self._register, self._hints.local_arrays, self._words, self._features)
        writer = LaneWriter(self._builder, name, count, vectors, scalar)
        match steps:
            case [Assign(targets=(total,), values=(Call(arguments=(_, term)),))]:
                self._assign_to(total, Value(total.type, writer.total(self._load(total).value, term)))
            case _:
                writer.write(steps)
                for target in (t for s in steps if isinstance(s, Assign) for t in s.targets):
                    for table in (self._types, self._values, self._slots):
                        table.pop(target.name, None)  # it has as many values as lanes

    @contextmanager
    def _counters(self, names: Sequence[str]) -> Iterator[Scalar]:
        """A function that gives the values of expressions in an iteration of some loops."""
        before = [(self._types.get(name), self._values.get(name)) for name in names]

        def scalar(expression: Expr, iteration: Mapping[str, int]) -> Any:
            for name, number in iteration.items():
                self._types[name], self._values[name] = "int64", constant("int64", number)
            found = self._expression(expression)
            if found.type != expression.type:
                raise Refused(f"{expression.text} is {found.type} by Numba's rules")
            return found.value

        yield scalar
        for name, olds in zip(names, before, strict=True):
            for table, old in zip((self._types, self._values), olds, strict=True):
                table.pop(name, None)
                if old is not None:
                    table[name] = old

    def _while(self, node: While) -> None:
        head, body, end = (self._block(name) for name in ("while", "do", "done"))
        self._builder.branch(head)
        self._builder.position_at_end(head)
        self._builder.cbranch(self._truth(self._expression(node.test)), body, end)
        self._builder.position_at_end(body)
        self._loops.append(_Loop(head, end))
        self._suite(node.body)
        self._loops.pop()
        self._go(head)
        self._builder.position_at_end(end)

    def _if(self, node: If) -> None:
        self._branches(node.branches, node.otherwise)

    def _branches(self, branches: Sequence[tuple[Expr, Block]], rest: Block | None) -> None:
        (test, chosen), *more = branches
        then, otherwise, end = (self._block(name) for name in ("then", "else", "fi"))
        self._builder.cbranch(self._truth(self._expression(test)), then, otherwise)
        self._builder.position_at_end(then)
        self._suite(chosen)
        reached = self._go(end)
        self._builder.position_at_end(otherwise)
        if more:
            self._branches(more, rest)
        elif rest is not None:
            self._suite(rest)
        reached |= self._go(end)
        self._builder.position_at_end(end)
        if not reached:
            self._builder.unreachable()

    def _break(self, node: Break) -> None:
        self._in_a_loop()
        self._builder.branch(self._loops[-1].end)

    def _in_a_loop(self) -> None:
        if not self._loops:
            raise Refused("not in a loop")

    def _continue(self, node: Continue) -> None:
        self._in_a_loop()
        self._builder.branch(self._loops[-1].next)

    def _comment(self, node: Comment) -> None:
        pass

    def _return(self, node: Return) -> None:
        if self._result is None:
            if node.value is not None:
                raise Refused("a result")
            self._builder.ret_void()
        else:
            if node.value is None:
                raise Refused("no result")
            self._builder.ret(self._cast(self._expression(node.value), self._result))

    def _alone(self, node: Evaluate) -> None:
        self._expression(node.value)

    # Expressions

    def _expression(self, node: Expr) -> Value:
        value: Value = _EXPRESSIONS[type(node)](self, node)
        return value

    def _load(self, node: Name) -> Value:
        type_ = self._types.get(node.name)
        if type_ is None:
            raise Refused(f"{node.name} before its first assignment")
        value = self._values.get(node.name)
        return Value(type_, self._builder.load(self._slots[node.name]) if value is None else value)

    def _number(self, node: Number) -> Value:
        return self._literal(node.value)

    def _literal(self, value: Any) -> Value:
        type_ = _LITERALS.get(type(value))
        if type_ is None or (type_ == "int64" and not -(2**63) <= value < 2**63):
            raise Refused(f"the literal {value!r}")
        return Value(type_, constant(type_, value))

    def _binary(self, node: Binary) -> Value:
        if node.op in ("and", "or"):
            return self._boolean(node)
        return self._call(_BINARY[node.op], self._expression(node.left), self._expression(node.right))

    def _unary(self, node: Unary) -> Value:
        operand = node.operand
        if node.op == "-" and isinstance(operand, Number) and type(operand.value) is not bool:
            return self._literal(-operand.value)
        return self._call(_UNARY[node.op], self._expression(operand))

    def _boolean(self, node: Binary) -> Value:
        """Evaluate operands until one decides. All must be booleans, because Python's and, or return an operand."""
        operands: list[Expr] = [node.right]
        left = node.left
        while isinstance(left, Binary) and left.op == node.op:
            operands.append(left.right)
            left = left.left
        operands.append(left)
        first = self._expression(operands.pop())
        slot = self._slot(llir.IntType(1))
        end = self._block("decided")
        self._decide(node.op, first, slot, end)
        while operands:
            self._decide(node.op, self._expression(operands.pop()), slot, end)
        self._builder.branch(end)
        self._builder.position_at_end(end)
        return Value("bool", self._builder.load(slot))

    def _decide(self, op: str, value: Value, slot: Any, end: Any) -> None:
        if value.type != "bool":
            raise Refused("and, or of other than booleans")
        self._builder.store(value.value, slot)
        more = self._block("more")
        self._builder.cbranch(value.value, *((end, more) if op == "or" else (more, end)))
        self._builder.position_at_end(more)

    def _element(self, node: Load) -> Value:
        return self._call(operator.getitem, self._load(node.pointer), self._expression(node.index))

    def _function_call(self, node: Call) -> Value:
        function = self._scope.get(node.function)
        if function is None or node.function in self._types:
            raise Refused(f"the function {node.function}")
        if isinstance(function, DialectFunction) and function.literals:
            return self._call_with_literals(function, node)
        arguments = [self._expression(argument) for argument in node.arguments]
        if isinstance(function, Cast):
            if len(arguments) != 1 or arguments[0].type.endswith("*"):
                raise Refused(f"{function} of these")
            return Value(function.type, self._cast(arguments[0], function.type))
        if node.function in self._repeated:
            return self._call_once_written(node.function, function, arguments)
        return self._call(function, *arguments)

    def _call_with_literals(self, function: DialectFunction, node: Call) -> Value:
        """A call where some arguments must be numbers in the text."""
        kinds: list[Kind] = []
        values: list[Any] = []
        for number, argument in enumerate(node.arguments):
            if number not in function.literals:
                value = self._expression(argument)
                kinds.append(value.type)
                values.append(value.value)
            elif isinstance(argument, Number) and type(argument.value) is int:
                kinds.append(argument.value)
                values.append(None)
            else:
                raise Refused(f"{node.function} of other than literals")
        found = operation(function, tuple(kinds))
        if found is None or found.expected != tuple(kinds):
            raise Refused(f"{node.function} of {kinds}")
        return Value(found.result, found.emit(self._builder, values))

    def _call_once_written(self, name: str, function: Any, arguments: list[Value]) -> Value:
        """A call of a function of the module that holds the operation, which is compiled once."""
        kinds = tuple([argument.type for argument in arguments])
        found = operation(function, kinds)
        if found is None or found.expected != kinds:
            return self._call(function, *arguments)
        own = self._written.get((name, kinds))
        if own is None:
            types_ = [argument.value.type for argument in arguments]
            own = self._written[name, kinds] = OutlinedFunction(
                self._module, f"{name}_{len(self._written)}", found.emit, types_, value_type(found.result),
                self._repeated[name], self._of_sections or (),
            )  # fmt: skip
        return Value(found.result, own.call(self._builder, [argument.value for argument in arguments]))

    # Helpers

    def _call(self, function: Any, *arguments: Value) -> Value:
        kinds = tuple([argument.type for argument in arguments])
        found = operation(function, kinds)
        if found is None:
            raise Refused(f"{function} of {kinds}")
        values = [self._cast(argument, str(type_)) for argument, type_ in zip(arguments, found.expected)]
        return Value(found.result, found.emit(self._builder, values))

    def _slot(self, type_: Any, name: str = "") -> Any:
        """Memory for a variable, in the entry block, where Numba's lowering puts its own."""
        self._entry.position_at_end(self._entry.block)
        return self._entry.alloca(type_, name=name)

    def _cast(self, value: Value, type_: str) -> Any:
        return cast(self._builder, value.value, value.type, type_)

    def _truth(self, value: Value) -> Any:
        return truth(self._builder, value.value, value.type)

    def _block(self, name: str) -> Any:
        return self._builder.append_basic_block(name)

    def _go(self, block: Any) -> bool:
        """Branch to `block` unless the current block has ended; True if the branch was made."""
        if self._builder.block.is_terminated:
            return False
        self._builder.branch(block)
        return True


_OFTEN = 24
"""With at least so many calls, an elementary function is compiled once and called: a kernel of 180 sines compiles in a
fifth of the time."""


def _often_called(program: LoopProgram) -> dict[str, bool]:
    """The functions that a program calls often, and whether loops call them."""
    calls = _calls_in(program.body)
    often = [name for name, count in calls.items() if count >= _OFTEN]
    if not often:
        return {}
    in_loops = {name for loop in walk(program.body) if isinstance(loop, For) for name in _calls_in(loop.body)}
    return {name: name in in_loops for name in often}


def _calls_in(block: Block) -> Counter[str]:
    """How often the text calls each long function."""
    return Counter(
        part.function
        for statement in walk(block)
        for whole in expressions_of(statement)
        for part in whole.walk()
        if isinstance(part, Call) and part.function in LONG
    )


_STATEMENTS: dict[type[Statement], Callable[..., None]] = {
    Assign: OnePass._assignment, Augment: OnePass._augmented, Store: OnePass._store, LocalArray: OnePass._local_array,
    For: OnePass._for, While: OnePass._while, If: OnePass._if, Break: OnePass._break, Continue: OnePass._continue,
    Comment: OnePass._comment, Return: OnePass._return, Evaluate: OnePass._alone,
}  # fmt: skip

_EXPRESSIONS: dict[type[Expr], Callable[..., Value]] = {
    Name: OnePass._load, Number: OnePass._number, Binary: OnePass._binary, Unary: OnePass._unary,
    Load: OnePass._element, Call: OnePass._function_call,
}  # fmt: skip
