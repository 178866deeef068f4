"""Kernel source -> LLVM IR in a single walk over its syntax tree, with Numba's typing rules and Numba's lowering.

Numba's front end (bytecode, data flow, type inference to a fixed point, liveness, lowering) takes 70 ms for a kernel of
25 lines. Kernels do not need its generality: in a kernel every variable has one type, which is known at its first
assignment. So each expression is typed when the walk reaches it, by asking Numba's typing context what `operator.add`
of these types is, and lowered at once by the implementation that Numba's target context has for that signature. The
answers are kept.

    acc = float32(0)                          slot for acc: float32
    for j in range(columns):                  counter from 0 to columns, nothing else
        acc = reduce_add(acc, x[i * columns + j])      getitem(CPointer(float32), int64) -> float32, ...

Semantics and types are Numba's: literals are int64 and float64, operands are promoted as Numba promotes them. Code
outside this language (see `_STATEMENTS`, `_EXPRESSIONS`), or a variable that would change its type, raises `Refused`;
then numba_frontend.py sends the kernel through Numba's whole front end.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import llvmlite.ir as llir
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock

from .dialect_memory import MOST_ELEMENTS, stack_array
from .numba_internals import allow_contraction

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
    ast.Not: operator.not_,
}  # fmt: skip

_LITERALS: dict[type, Any] = {
    int: types.int64, float: types.float64, bool: types.boolean, complex: types.complex128,
}  # fmt: skip

_I32, _I64 = llir.IntType(32), llir.IntType(64)


class Refused(Exception):
    """The kernel uses something that needs Numba's whole front end."""


class Value(NamedTuple):
    """A Numba type and an LLVM value of that type."""

    type: Any
    value: Any


class _Loop(NamedTuple):
    next: Any
    end: Any


class Rules:
    """Numba's answers about operations on types; each question is asked once."""

    def __init__(self, typing: Any, target: Any) -> None:
        self.typing = typing
        self.target = target
        self._known: dict[Any, tuple[Any, Any]] = {}

    def __call__(self, function: Any, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
        """The signature and the implementation of a global function, an operator or an intrinsic for these types."""
        key = (function, arguments)
        known = self._known.get(key)
        if known is None:
            with global_compiler_lock:
                kind = self.typing.resolve_value_type(function)
                signature = kind.get_call_type(self.typing, arguments, {})
                if signature is None:
                    raise Refused(f"{function} of {arguments}")
                known = self._known[key] = signature, self.target.get_function(kind, signature)
        return known


class OnePass:
    """The lowering of one kernel to LLVM IR."""

    def __init__(self, rules: Rules, scope: dict[str, Any], module: Any) -> None:
        self._rules = rules
        self._target = rules.target
        self._scope = scope
        self._module = module
        self._locals: set[str] = set()
        self._types: dict[str, Any] = {}
        self._slots: dict[str, Any] = {}
        self._loops: list[_Loop] = []
        self._result: Any = None

    def lower(self, definition: ast.FunctionDef, parameters: list[Any], result: Any) -> Any:
        """Lower a definition to an internal LLVM function `body` of the same parameters; `result` is a type or None."""
        names = [argument.arg for argument in definition.args.args]
        if len(names) != len(parameters):
            raise TypeError(f"the function takes {len(names)} arguments, {len(parameters)} parameters are given")
        kinds = [self._target.get_value_type(type_) for type_ in parameters]
        returned = llir.VoidType() if result is None else self._target.get_value_type(result)
        function = llir.Function(self._module, llir.FunctionType(returned, kinds), "body")
        function.linkage = "internal"
        self._locals = {*names, *_assigned_names(definition)}
        self._entry = llir.IRBuilder(function.append_basic_block("entry"))
        self._builder = llir.IRBuilder(function.append_basic_block("start"))
        self._result = result
        for name, type_, value in zip(names, parameters, function.args):
            value.name = name
            self._assign(name, Value(type_, value))
        start = self._builder.block
        self._suite(definition.body)
        if not self._builder.block.is_terminated:
            if result is not None:
                raise Refused("the end without a return")
            self._builder.ret_void()
        self._entry.position_at_end(self._entry.block)
        self._entry.branch(start)
        allow_contraction(self._module)
        return function

    # Statements

    def _suite(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self._builder.block.is_terminated:
                return
            _look_up(_STATEMENTS, statement)(self, statement)

    def _assign(self, name: str, value: Value) -> None:
        type_ = self._types.get(name)
        if type_ is None:
            self._types[name] = value.type
            self._slots[name] = self._slot(value.value.type, name=name)
        elif type_ != value.type:
            raise Refused(f"{name} is both {type_} and {value.type}")
        self._builder.store(value.value, self._slots[name])

    def _assignment(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise Refused("several targets")
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Name(id="local_array"), args=[ast.Constant(value=int() as n), ast.Name(id=t)]
                ),
            ):
                self._local_array(name, n, t)
                return
        self._store(node.targets[0], self._expression(node.value))

    def _local_array(self, name: str, count: int, dtype: str) -> None:
        """A variable that points to memory in the first block."""
        element = self._scope.get(dtype)
        if not isinstance(element, types.Number) or name in self._types or not 0 < count <= MOST_ELEMENTS:
            raise Refused("this local array")
        memory = stack_array(self._target, self._builder, count, element)
        self._assign(name, Value(types.CPointer(element), memory))  # type: ignore[attr-defined]

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            self._assign(target.id, self._call(_operator(node.op), self._load(target.id), self._expression(node.value)))
        elif isinstance(target, ast.Subscript):
            pointer, index = self._expression(target.value), self._expression(target.slice)
            old = self._call(operator.getitem, pointer, index)
            self._call(operator.setitem, pointer, index, self._call(_operator(node.op), old,
            self._expression(node.value)))
        else:
            raise Refused("this target")

    def _store(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._assign(target.id, value)
        elif isinstance(target, ast.Subscript):
            self._call(operator.setitem, self._expression(target.value), self._expression(target.slice), value)
        else:
            raise Refused("this target")

    def _for(self, node: ast.For) -> None:
        """The loop has a separate counter, because the body may assign to the loop variable."""
        call = node.iter
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"):
            raise Refused("a loop over something else than range")
        if node.orelse or call.keywords or "range" in self._locals or not isinstance(node.target, ast.Name):
            raise Refused("this form of a loop")
        bounds = [self._expression(argument) for argument in call.args]
        if not 1 <= len(bounds) <= 3 or any(bound.type != types.int64 for bound in bounds):
            raise Refused("a range of other than int64")
        first = bounds[0].value if len(bounds) > 1 else llir.Constant(_I64, 0)
        last = bounds[1 if len(bounds) > 1 else 0].value
        step = bounds[2].value if len(bounds) == 3 else llir.Constant(_I64, 1)
        if not isinstance(step, llir.Constant) or step.constant == 0:
            raise Refused("a step that is not a constant")
        counter = self._slot(_I64)
        head, body, next_, end = (self._block(name) for name in ("for", "do", "next", "done"))
        builder = self._builder
        builder.store(first, counter)
        builder.branch(head)
        builder.position_at_end(head)
        value = builder.load(counter)
        builder.cbranch(builder.icmp_signed("<" if step.constant > 0 else ">", value, last), body, end)
        builder.position_at_end(body)
        self._assign(node.target.id, Value(types.int64, value))
        self._loops.append(_Loop(next_, end))
        self._suite(node.body)
        self._loops.pop()
        self._go(next_)
        builder.position_at_end(next_)
        builder.store(builder.add(builder.load(counter), step, flags=("nsw",)), counter)
        back = builder.branch(head)
        back.set_metadata("llvm.loop", self._loop_hints(node))
        builder.position_at_end(end)

    def _while(self, node: ast.While) -> None:
        if node.orelse:
            raise Refused("else after a loop")
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

    def _if(self, node: ast.If) -> None:
        then, otherwise, end = (self._block(name) for name in ("then", "else", "fi"))
        self._builder.cbranch(self._truth(self._expression(node.test)), then, otherwise)
        reached = False
        for block, statements in ((then, node.body), (otherwise, node.orelse)):
            self._builder.position_at_end(block)
            self._suite(statements)
            reached |= self._go(end)
        self._builder.position_at_end(end)
        if not reached:
            self._builder.unreachable()

    def _break(self, node: ast.Break) -> None:
        self._in_a_loop()
        self._builder.branch(self._loops[-1].end)

    def _in_a_loop(self) -> None:
        if not self._loops:
            raise Refused("not in a loop")

    def _continue(self, node: ast.Continue) -> None:
        self._in_a_loop()
        self._builder.branch(self._loops[-1].next)

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _return(self, node: ast.Return) -> None:
        if self._result is None:
            if node.value is not None:
                raise Refused("a result")
            self._builder.ret_void()
        else:
            if node.value is None:
                raise Refused("no result")
            self._builder.ret(self._cast(self._expression(node.value), self._result))

    def _alone(self, node: ast.Expr) -> None:
        self._expression(node.value)

    # Expressions

    def _expression(self, node: ast.expr) -> Value:
        value: Value = _look_up(_EXPRESSIONS, node)(self, node)
        return value

    def _name(self, node: ast.Name) -> Value:
        if node.id in self._locals:
            return self._load(node.id)
        value = self._scope.get(node.id)
        if type(value) not in _LITERALS:
            raise Refused(f"the value of {node.id}")
        return self._literal(value)

    def _load(self, name: str) -> Value:
        if name not in self._types:
            raise Refused(f"{name} before its first assignment")
        return Value(self._types[name], self._builder.load(self._slots[name]))

    def _constant(self, node: ast.Constant) -> Value:
        return self._literal(node.value)

    def _literal(self, value: Any) -> Value:
        type_ = _LITERALS.get(type(value))
        if type_ is None or (type_ is types.int64 and not -(2**63) <= value < 2**63):
            raise Refused(f"the literal {value!r}")
        return Value(type_, self._target.get_constant(type_, value))

    def _binary(self, node: ast.BinOp) -> Value:
        return self._call(_operator(node.op), self._expression(node.left), self._expression(node.right))

    def _unary(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            if type(value) in (int, float):
                return self._literal(-value)  # type: ignore[operator]
        return self._call(_operator(node.op), self._expression(node.operand))

    def _compare(self, node: ast.Compare) -> Value:
        left, right = self._expression(node.left), self._expression(node.comparators[0])
        result = self._call(_operator(node.ops[0]), left, right)
        if len(node.ops) == 1:
            return result
        with self._shortcut(result, stop_at=False) as rest:
            for op, comparator in zip(node.ops[1:], node.comparators[1:]):
                left, right = right, self._expression(comparator)
                rest(self._call(_operator(op), left, right))
        return self._shortcut_value()

    def _boolean(self, node: ast.BoolOp) -> Value:
        first = self._expression(node.values[0])
        with self._shortcut(first, stop_at=isinstance(node.op, ast.Or)) as rest:
            for operand in node.values[1:]:
                rest(self._expression(operand))
        return self._shortcut_value()

    @contextmanager
    def _shortcut(self, first: Value, stop_at: bool) -> Iterator[Callable[[Value], None]]:
        """Evaluate operands until one is `stop_at`. All must be booleans, because Python's and, or return an
        operand."""
        slot = self._slot(llir.IntType(1))
        end = self._block("decided")

        def operand(value: Value) -> None:
            if value.type != types.boolean:
                raise Refused("and, or of other than booleans")
            self._builder.store(value.value, slot)
            more = self._block("more")
            self._builder.cbranch(value.value, *((end, more) if stop_at else (more, end)))
            self._builder.position_at_end(more)

        operand(first)
        yield operand
        self._builder.branch(end)
        self._builder.position_at_end(end)
        self._decided = slot

    def _shortcut_value(self) -> Value:
        return Value(types.boolean, self._builder.load(self._decided))

    def _conditional(self, node: ast.IfExp) -> Value:
        then, otherwise, end = (self._block(name) for name in ("then", "else", "chosen"))
        self._builder.cbranch(self._truth(self._expression(node.test)), then, otherwise)
        self._builder.position_at_end(then)
        first = self._expression(node.body)
        slot = self._slot(first.value.type)
        self._builder.store(first.value, slot)
        self._builder.branch(end)
        self._builder.position_at_end(otherwise)
        second = self._expression(node.orelse)
        if first.type != second.type:
            raise Refused("a conditional expression of two types")
        self._builder.store(second.value, slot)
        self._builder.branch(end)
        self._builder.position_at_end(end)
        return Value(first.type, self._builder.load(slot))

    def _subscript(self, node: ast.Subscript) -> Value:
        return self._call(operator.getitem, self._expression(node.value), self._expression(node.slice))

    def _function_call(self, node: ast.Call) -> Value:
        if node.keywords or not isinstance(node.func, ast.Name) or node.func.id in self._locals:
            raise Refused("this form of a call")
        function = self._scope.get(node.func.id)
        if function is None:
            raise Refused(f"the function {node.func.id}")
        arguments = [self._expression(argument) for argument in node.args]
        if isinstance(function, types.Number) and len(arguments) == 1 and isinstance(arguments[0].type, _CASTABLE):
            return Value(function, self._cast(arguments[0], function))
        return self._call(function, *arguments)

    # Helpers

    def _call(self, function: Any, *arguments: Value) -> Value:
        signature, implementation = self._rules(function, tuple(argument.type for argument in arguments))
        values = [self._cast(argument, type_) for argument, type_ in zip(arguments, signature.args)]
        return Value(signature.return_type, implementation(self._builder, values))

    def _slot(self, type_: Any, name: str = "") -> Any:
        """Memory for a variable, in the entry block, where Numba's lowering puts its own."""
        self._entry.position_at_end(self._entry.block)
        return self._entry.alloca(type_, name=name)

    def _cast(self, value: Value, type_: Any) -> Any:
        if value.type == type_:
            return value.value
        return self._target.cast(self._builder, value.value, value.type, type_)

    def _truth(self, value: Value) -> Any:
        return value.value if value.type == types.boolean else self._call(bool, value).value

    def _block(self, name: str) -> Any:
        return self._builder.append_basic_block(name)

    def _go(self, block: Any) -> bool:
        """Branch to `block` unless the current block has ended; True if the branch was made."""
        if self._builder.block.is_terminated:
            return False
        self._builder.branch(block)
        return True

    def _loop_hints(self, node: ast.For) -> Any:
        """Metadata for LLVM about a loop.

        Interleaving iterations and unrolling remainders double the code and so the compile time. Measurements showed no
        gain, except where iterations wait for each other: in reductions (1.35 times for softmax).
        """
        hints: list[tuple[Any, ...]] = [("llvm.loop.unroll.runtime.disable",)]
        if not _carries_a_value(node):
            hints.append(("llvm.loop.interleave.count", llir.Constant(_I32, 1)))
        loop = llir.values.MDValue(self._module, [], name=str(len(self._module.metadata)))
        loop.operands = (loop, *(self._module.add_metadata(hint) for hint in hints))
        return loop


_CASTABLE = (types.Number, types.Boolean)

_STATEMENTS: dict[type[ast.AST], Callable[..., None]] = {
    ast.Assign: OnePass._assignment, ast.AugAssign: OnePass._augmented, ast.For: OnePass._for,
    ast.While: OnePass._while, ast.If: OnePass._if, ast.Break: OnePass._break, ast.Continue: OnePass._continue,
    ast.Pass: OnePass._pass, ast.Return: OnePass._return, ast.Expr: OnePass._alone,
}  # fmt: skip

_EXPRESSIONS: dict[type[ast.AST], Callable[..., Value]] = {
    ast.Name: OnePass._name, ast.Constant: OnePass._constant, ast.BinOp: OnePass._binary, ast.UnaryOp: OnePass._unary,
    ast.Compare: OnePass._compare, ast.BoolOp: OnePass._boolean, ast.IfExp: OnePass._conditional,
    ast.Subscript: OnePass._subscript, ast.Call: OnePass._function_call,
}  # fmt: skip


def _look_up(table: dict[type[ast.AST], Callable[..., Any]], node: ast.AST) -> Callable[..., Any]:
    method = table.get(type(node))
    if method is None:
        raise Refused(type(node).__name__)
    return method


def _operator(node: ast.AST) -> Callable[..., Any]:
    return _look_up(_OPERATORS, node)


def _assigned_names(definition: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _carries_a_value(loop: ast.For) -> bool:
    """True if an assignment in the loop's body reads the variable that it assigns to, as an accumulation does."""
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            return True
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if any(isinstance(read, ast.Name) and read.id == name for read in ast.walk(node.value)):
                return True
    return False
