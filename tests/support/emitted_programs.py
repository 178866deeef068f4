"""Invariants of the loop programs of all kernels: each name has one type, and the text says all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import pytest
from hloom.numba_backend.emitted_kernel import EmittedKernel, memory_type
from hloom.numba_backend.loops.expressions import Binary, Expr, Name, Unary
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.statements import (
    Assign,
    Augment,
    Comment,
    For,
    KernelParameter,
    LocalArray,
    PointerParameter,
    SizeParameter,
    Statement,
    Store,
    expressions_of,
    walk,
)
from hloom.numba_backend.loops.typing import is_float, is_integer
from hloom.numba_backend.lowering import _Lowering


@contextmanager
def recorded() -> Iterator[list[EmittedKernel]]:
    """The kernels of all modules that are compiled inside."""
    found: list[EmittedKernel] = []
    kernel = _Lowering.kernel

    def record(self: _Lowering, name: str, emitted: EmittedKernel, *arguments: Any) -> None:
        found.append(emitted)
        kernel(self, name, emitted, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Lowering, "kernel", record)
        yield found


_ARITHMETIC = frozenset(("+", "-", "*", "//", "%", "&", "|", "^", "~", "<<", ">>"))


def check_arithmetic(kernel: EmittedKernel) -> None:
    """Operators of integers are for indices, which are int64; data is computed by functions, which wrap around and keep
    its type."""
    for statement in walk(kernel.program.body):
        found = [e for whole in expressions_of(statement) for e in whole.walk() if isinstance(e, Binary | Unary)]
        if isinstance(statement, Augment):
            found.append(Binary(statement.op, statement.target, statement.value))
        for e in found:
            if e.op in _ARITHMETIC and any(is_integer(part.type) for part in e.parts):
                assert {part.type for part in e.parts} == {"int64"}, f"{kernel.program.name}: {e.text}"


def type_of(parameter: KernelParameter) -> str:
    if isinstance(parameter, SizeParameter):
        return "int64"
    memory = memory_type(parameter.element_type)
    return f"{memory}*" if isinstance(parameter, PointerParameter) else memory


def names_of(statement: Statement) -> Iterator[Name]:
    """The names that a statement itself has."""
    match statement:
        case Assign(targets=targets):
            yield from targets
        case For(variable=variable):
            yield variable
        case LocalArray(name=name):
            yield name
    for expression in expressions_of(statement):
        yield from (e for e in expression.walk() if isinstance(e, Name))


def check_one_type_each(kernel: EmittedKernel) -> None:
    """Every name has one type at all its uses; assignments and stores keep it."""
    types = {"lo": "int64", "hi": "int64"} | {p.name: type_of(p) for p in kernel.parameters}
    assert kernel.program.parameters == tuple(types)
    for statement in walk(kernel.program.body):
        for name in names_of(statement):
            assert types.setdefault(name.name, name.type) == name.type, f"{name} is {types[name.name]} and {name.type}"
        if isinstance(statement, Assign):
            for target, value in zip(statement.targets, statement.values, strict=True):
                assert target.type == value.type, f"{target} = {value} of type {value.type}"
        elif isinstance(statement, Augment):
            target, value = statement.target, statement.value
            assert value.type == target.type, f"{target} {statement.op}= {value} of type {value.type}"
        elif isinstance(statement, Store):
            assert statement.index.type == "int64", f"the index {statement.index} is {statement.index.type}"
            check_stored(statement.pointer.type[:-1], statement.value)


def check_stored(element: str, value: Expr) -> None:
    """Numba converts stored values, but not from one kind of number to another one."""
    both = element, value.type
    assert element == value.type or all(map(is_integer, both)) or all(map(is_float, both)), f"{value} to {element}"


def check_text(kernel: EmittedKernel) -> None:
    """The text, read back, is a program of the same structure and types."""
    types = {"lo": "int64", "hi": "int64"} | {p.name: type_of(p) for p in kernel.parameters}
    program = read(to_text(kernel.program), types)
    written = (statement for statement in walk(kernel.program.body) if not isinstance(statement, Comment))
    for ours, theirs in zip_longest(written, walk(program.body)):
        assert type(ours) is type(theirs)
        for name, other in zip_longest(names_of(ours), names_of(theirs)):
            assert (name.name, name.type) == (other.name, other.type)
        for one, two in zip_longest(expressions_of(ours), expressions_of(theirs)):
            for a, b in zip_longest(one.walk(), two.walk()):
                assert (type(a), a.text) == (type(b), b.text)
                assert a.type == b.type, f"{a.text} is {a.type}, and {b.type} once read"


def check_program(kernel: EmittedKernel) -> None:
    """Check the invariants of a kernel, once for each text."""
    if kernel.source not in _seen:
        check_one_type_each(kernel)
        check_arithmetic(kernel)
        check_text(kernel)
        _seen.add(kernel.source)


_seen: set[str] = set()
