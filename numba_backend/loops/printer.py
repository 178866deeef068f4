"""Print a loop program as Python text."""

from __future__ import annotations

from collections.abc import Sequence

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
    lines = [f"@vectors({program.vector_bits})"] if program.vector_bits else []
    lines += [f"def {program.name}({', '.join(program.parameters)}):"]
    lines += [f"    # {note}" for note in program.notes]
    _write(program.body, "    ", lines)
    lines.append("")
    return "\n".join(lines)


def lines_of(block: Block, indent: str = "") -> list[str]:
    """The lines of a block."""
    lines: list[str] = []
    _write(block, indent, lines)
    return lines


def _write(block: Block, indent: str, lines: list[str]) -> None:
    if not any(not isinstance(s, Comment) for s in block):
        lines.append(indent + "pass")
    for statement in block:
        match statement:
            case Assign():
                if len(statement.targets) == 1:
                    lines.append(f"{indent}{statement.targets[0].text} = {statement.values[0].text}")
                else:
                    lines.append(f"{indent}{_list(statement.targets)} = {_list(statement.values)}")
            case Store():
                lines.append(f"{indent}{statement.pointer.text}[{statement.index.text}] = {statement.value.text}")
            case For():
                lines.append(f"{indent}for {statement.variable.text} in {_range(statement)}:")
                _write(statement.body, indent + "    ", lines)
            case If():
                word = "if"
                for test, branch in statement.branches:
                    lines.append(f"{indent}{word} {test.text}:")
                    _write(branch, indent + "    ", lines)
                    word = "elif"
                if statement.otherwise is not None:
                    lines.append(f"{indent}else:")
                    _write(statement.otherwise, indent + "    ", lines)
            case While():
                lines.append(f"{indent}while {statement.test.text}:")
                _write(statement.body, indent + "    ", lines)
            case _:
                lines.append(indent + _line(statement))


def _line(statement: Statement) -> str:
    match statement:
        case Augment(target=target, op=op, value=value):
            return f"{target.text} {op}= {value.text}"
        case LocalArray(name=name, count=count, dtype=dtype):
            return f"{name.text} = local_array({count}, {dtype})"
        case Comment(text=text):
            return f"# {text}"
        case Break():
            return "break"
        case Continue():
            return "continue"
        case Return(value=value):
            return "return" if value is None else f"return {value.text}"
        case Evaluate(value=value):
            return value.text
    raise AssertionError(statement)


def _range(loop: For) -> str:
    if loop.kind != "range":
        assert loop.start is None
        return f"{loop.kind}({loop.stop.text})"
    if loop.step != 1:
        assert loop.start is not None
        return f"range({loop.start.text}, {loop.stop.text}, {loop.step})"
    return f"range({loop.stop.text})" if loop.start is None else f"range({loop.start.text}, {loop.stop.text})"


def _list(items: Sequence[Expr]) -> str:
    return ", ".join([item.text for item in items])
