"""Read Python text as a loop program. The runtime's own functions are written as text; tests read kernels back.

Each variable has one type: the type of its first assignment.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import cast

from .expressions import Binary, Call, Expr, Load, Name, Number, Unary
from .lanes import check_kind
from .statements import (
    LOOP_KINDS,
    Assign,
    Augment,
    Block,
    Break,
    Continue,
    Evaluate,
    For,
    If,
    LocalArray,
    LoopKind,
    LoopProgram,
    Return,
    Statement,
    Store,
    While,
)
from .typing import TypeUnknown, pointer_to, type_of_binary

_BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.And: "and", ast.Or: "or",
}  # fmt: skip
_UNARY = {ast.USub: "-", ast.Invert: "~", ast.Not: "not"}


class NotALoopProgram(Exception):
    """The text uses something that loop programs do not have."""


def read(
    text: str | ast.Module, types: Mapping[str, str] | Sequence[str], name: str | None = None
) -> LoopProgram:
    """The program of a definition. `types`: the type of each parameter. `name`: the definition's, if it is known.

    Raises NotALoopProgram, and for what is no Python at all SyntaxError.
    """
    definition, *more = (ast.parse(text) if isinstance(text, str) else text).body
    if more or not isinstance(definition, ast.FunctionDef) or name not in (None, definition.name):
        raise NotALoopProgram("a text that is not one definition")
    arguments = definition.args
    names = tuple(argument.arg for argument in arguments.args)
    others = (arguments.posonlyargs, arguments.kwonlyargs, arguments.vararg, arguments.kwarg, arguments.defaults)
    if any(others) or len(names) != len(types):
        raise NotALoopProgram("parameters of another form")
    by_name = types if isinstance(types, Mapping) else dict(zip(names, types))
    reader = _Reader({name: Name(name, by_name[name]) for name in names})
    try:
        body = reader.block(definition.body)
        return LoopProgram(definition.name, names, body, vector_bits=_vector_bits(definition.decorator_list))
    except TypeUnknown as error:
        raise NotALoopProgram(f"the type of {error}") from error


def _vector_bits(decorators: list[ast.expr]) -> int:
    """The width in ``@vectors(256)``; 0 without it."""
    match decorators:
        case []:
            return 0
        case [ast.Call(func=ast.Name(id="vectors"), args=[ast.Constant(value=int() as bits)], keywords=[])]:
            return bits
    raise NotALoopProgram("a decorator of another form")


class _Reader:
    def __init__(self, names: dict[str, Name]) -> None:
        self._names = names

    def block(self, nodes: list[ast.stmt]) -> Block:
        return [self._statement(node) for node in nodes if not isinstance(node, ast.Pass)]

    def _statement(self, node: ast.stmt) -> Statement:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="local_array"), args=args)):
                match args:
                    case [ast.Constant(value=int() as count), ast.Name(id=dtype)]:
                        return LocalArray(self._named(name, pointer_to(dtype)), count, dtype)
                raise NotALoopProgram("this local array")
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                result = self._expression(value)
                return Assign((self._named(name, result.type),), (result,))
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                results = tuple(self._expression(value) for value in values)
                if len(targets) != len(results):
                    raise NotALoopProgram("targets and values of different numbers")
                names = tuple(self._target(t, r.type) for t, r in zip(targets, results))
                return Assign(names, results)
            case ast.Assign(targets=[ast.Subscript(value=pointer, slice=index)], value=value):
                return Store(self._pointer(pointer), self._expression(index), self._expression(value))
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                return self._augment(self._name(name), self._operator(op), self._expression(value))
            case ast.AugAssign(target=ast.Subscript(value=pointer, slice=index), op=op, value=value):
                element = self._pointer(pointer)[self._expression(index)]
                result = Binary(self._operator(op), element, self._expression(value))
                return Store(element.pointer, element.index, result)
            case ast.For(
                target=ast.Name(id=name),
                iter=ast.Call(func=ast.Name(id=of), args=args, keywords=[]),
                orelse=[],
            ) if of in LOOP_KINDS and of not in self._names:
                return self._for(name, [self._expression(a) for a in args], node.body, of)
            case ast.While(test=test, body=body, orelse=[]):
                return While(self._expression(test), self.block(body))
            case ast.If():
                return self._if(node)
            case ast.Break():
                return Break()
            case ast.Continue():
                return Continue()
            case ast.Return(value=value):
                return Return(None if value is None else self._expression(value))
            case ast.Expr(value=value):
                return Evaluate(self._expression(value))
        raise NotALoopProgram(type(node).__name__)

    def _for(self, name: str, bounds: list[Expr], body: list[ast.stmt], of: str) -> For:
        start = bounds[0] if len(bounds) > 1 else None
        step = bounds[2] if len(bounds) == 3 else Number(1)
        if not 1 <= len(bounds) <= (3 if of == "range" else 1):
            raise NotALoopProgram("a range of another form")
        if not isinstance(step, Number) or type(step.value) is not int:
            raise NotALoopProgram("a range of another form")
        variable = self._named(name, "int64")
        stop = bounds[1 if len(bounds) > 1 else 0]
        loop = For(variable, start, stop, step.value, self.block(body), cast(LoopKind, of))
        check_kind(loop)
        return loop

    def _if(self, node: ast.If) -> If:
        branches = [(self._expression(node.test), self.block(node.body))]
        rest = node.orelse
        while len(rest) == 1 and isinstance(rest[0], ast.If):
            branches.append((self._expression(rest[0].test), self.block(rest[0].body)))
            rest = rest[0].orelse
        return If(branches, self.block(rest) if rest else None)

    def _target(self, node: ast.expr, type_: str) -> Name:
        if not isinstance(node, ast.Name):
            raise NotALoopProgram("this target")
        return self._named(node.id, type_)

    def _named(self, name: str, type_: str) -> Name:
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = Name(name, type_)
        elif found.type != type_:
            raise NotALoopProgram(f"{name} is both {found.type} and {type_}")
        return found

    def _name(self, name: str) -> Name:
        found = self._names.get(name)
        if found is None:
            raise NotALoopProgram(f"{name} before its first assignment")
        return found

    def _pointer(self, node: ast.expr) -> Name:
        if not isinstance(node, ast.Name):
            raise NotALoopProgram("a pointer that is no name")
        found = self._name(node.id)
        if not found.type.endswith("*"):
            raise NotALoopProgram(f"an element of {found.name}, which is no pointer")
        return found

    def _augment(self, target: Name, op: str, value: Expr) -> Augment:
        if type_of_binary(op, target.type, value.type) != target.type:
            raise NotALoopProgram(f"{target.name} would change its type")
        return Augment(target, op, value)

    def _operator(self, op: ast.AST) -> str:
        if type(op) not in _BINARY:
            raise NotALoopProgram(type(op).__name__)
        return _BINARY[type(op)]

    def _expression(self, node: ast.expr) -> Expr:
        match node:
            case ast.Name(id=name):
                return self._name(name)
            case ast.Constant(value=bool() | int() | float() as literal):
                return Number(literal)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return Number(-number)
            case ast.BinOp(left=left, op=op, right=right):
                return Binary(self._operator(op), self._expression(left), self._expression(right))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                return Unary(_UNARY[type(op)], self._expression(operand))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return Binary(self._operator(op), self._expression(left), self._expression(right))
            case ast.BoolOp(op=op, values=values):
                result = self._expression(values[0])
                for value in values[1:]:
                    result = Binary(_BINARY[type(op)], result, self._expression(value))
                return result
            case ast.Subscript(value=pointer, slice=index):
                return Load(self._pointer(pointer), self._expression(index))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return Call(name, tuple(self._expression(a) for a in args))
        raise NotALoopProgram(ast.unparse(node))
