"""The printer: a loop program as Python text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .expressions import Expr
from .statements import (
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
)


def to_text(program: LoopProgram) -> str:
    """The text of a program: a definition, with a newline at the end."""
    header = f"def {program.name}({', '.join(program.parameters)}):"
    return "\n".join([header, *lines_of(program.body, "    ")]) + "\n"


def lines_of(block: Block, indent: str = "") -> Iterator[str]:
    """The lines of a block."""
    if not any(not isinstance(s, Comment) for s in block):
        yield indent + "pass"
    for statement in block:
        yield from _lines(statement, indent)


def _lines(statement: Statement, indent: str) -> Iterator[str]:
    match statement:
        case Assign(targets=targets, values=values):
            yield f"{indent}{_list(targets)} = {_list(values)}"
        case Store(pointer=pointer, index=index, value=value):
            yield f"{indent}{pointer.text}[{index.text}] = {value.text}"
        case For(body=body):
            yield f"{indent}for {statement.variable.text} in {_range(statement)}:"
            yield from lines_of(body, indent + "    ")
        case If(branches=branches, otherwise=otherwise):
            word = "if"
            for test, block in branches:
                yield f"{indent}{word} {test.text}:"
                yield from lines_of(block, indent + "    ")
                word = "elif"
            if otherwise is not None:
                yield f"{indent}else:"
                yield from lines_of(otherwise, indent + "    ")
        case While(test=test, body=body):
            yield f"{indent}while {test.text}:"
            yield from lines_of(body, indent + "    ")
        case Augment(target=target, op=op, value=value):
            yield f"{indent}{target.text} {op}= {value.text}"
        case LocalArray(name=name, count=count, dtype=dtype):
            yield f"{indent}{name.text} = local_array({count}, {dtype})"
        case Comment(text=text):
            yield f"{indent}# {text}"
        case Break():
            yield indent + "break"
        case Continue():
            yield indent + "continue"
        case Return(value=value):
            yield indent + ("return" if value is None else f"return {value.text}")
        case Evaluate(value=value):
            yield indent + value.text


def _range(loop: For) -> str:
    if loop.step != 1:
        assert loop.start is not None
        return f"range({loop.start.text}, {loop.stop.text}, {loop.step})"
    return f"range({loop.stop.text})" if loop.start is None else f"range({loop.start.text}, {loop.stop.text})"


def _list(items: Sequence[Expr]) -> str:
    return ", ".join([item.text for item in items])
