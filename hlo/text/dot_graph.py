"""A module as a picture: Graphviz text, for `dot -Tsvg`.

A computation is a box with its instructions; a fusion is such a box within its caller's. Solid arrows carry values,
dashed ones lead from a call to the called computation. Scalar constants, and computations of a single operation (a
reducer, for example), are shown in the label of their user.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import HloComputation, HloInstruction, HloModule
from ..opcode import Opcode
from ..ops import spec_of
from .attributes import attribute_texts
from .literals import literal_text
from .names import Names

_COLOURS = {
    "elementwise": "#d9e8fb",
    "movement": "#e4f3dc",
    "reduce": "#f9dccb",
    "dot": "#f5c4c4",
    "random": "#f6e6b8",
    "control_flow": "#dcd3ee",
}
_OTHER_COLOUR = "#f2f2f2"
_SHOWN_ELEMENTS = 4
"""The most elements of a constant that a label shows."""
_LONGEST_LINE = 60


def to_dot(module: HloModule) -> str:
    """The graph of `module` in Graphviz's language."""
    return "\n".join(_Graph(module).lines()) + "\n"


class _Graph:
    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.names = Names(module.computations)
        self._nodes: dict[HloComputation, dict[HloInstruction, str]] = {}
        """For each computation drawn separately, its instructions' nodes: the ends of dashed arrows."""
        self._arrows: list[str] = []
        """Written last: an arrow within a box would pull both its ends into the box."""
        self._calls: list[tuple[str, HloComputation]] = []
        self._scalars: dict[HloInstruction, str] = {}
        """Parameters of fusions that are scalar constants in the caller: their values."""
        self._called_by_others = {
            called
            for instruction in module.instructions()
            if instruction.opcode is not Opcode.FUSION
            for called in instruction.called_computations()
        }
        self._count = 0

    def lines(self) -> Iterator[str]:
        yield f"digraph {_quoted(self.module.name)} {{"
        yield "  fontname=Helvetica; labeljust=l;"
        yield '  node [shape=box, style=filled, color="#888888", fontname=Helvetica, fontsize=10];'
        yield '  edge [color="#555555", arrowsize=0.7];'
        for computation in self.module.computations:
            if self._is_drawn(computation):
                kind = "ENTRY " if computation is self.module.entry else ""
                title = kind + self.names.of_computation(computation)
                inside = list(self._computation(computation, {}, "    "))
                yield f"  subgraph cluster_{self._next()} {{"
                yield f'    label={_quoted(title)}; style=rounded; color="#bbbbbb";'
                yield from inside
                yield "  }"
        yield from self._arrows
        for caller, called in self._calls:
            target = self._nodes[called][called.root]
            yield f"  {target} -> {caller} [style=dashed, dir=back, constraint=false];"
        yield "}"

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _is_drawn(self, computation: HloComputation) -> bool:
        """True for the entry and for computations that are not called by fusions, unless a label shows them."""
        if computation is self.module.entry:
            return True
        return computation in self._called_by_others and _single_operation(computation) is None

    def _computation(
        self, computation: HloComputation, arguments: dict[HloInstruction, str], indent: str
    ) -> Iterator[str]:
        """The nodes of a computation. `arguments`: in a fusion, the nodes that replace parameters."""
        nodes = dict(arguments)
        self._nodes[computation] = nodes
        for instruction in computation.instructions:
            if instruction in nodes:
                continue
            if instruction is not computation.root and self._scalar(instruction) is not None:
                continue
            if instruction.opcode is Opcode.FUSION:
                yield from self._fusion(instruction, nodes, indent)
                continue
            node = nodes[instruction] = f"n{self._next()}"
            colour = _COLOURS.get(spec_of(instruction.opcode).family, _OTHER_COLOUR)
            border = ", penwidth=2" if instruction is computation.root else ""
            yield f'{indent}{node} [label={_quoted(self._label(instruction))}, fillcolor="{colour}"{border}];'
            for operand in instruction.operands:
                if operand in nodes:
                    self._arrows.append(f"  {nodes[operand]} -> {node};")
            for called in dict.fromkeys(instruction.called_computations()):
                if _single_operation(called) is None:
                    self._calls.append((node, called))

    def _fusion(self, fusion: HloInstruction, nodes: dict[HloInstruction, str], indent: str) -> Iterator[str]:
        """A box with the fused instructions; operands' nodes replace its parameters, its root's node replaces it."""
        fused: HloComputation = fusion.attributes.calls
        arguments = {}
        for parameter, operand in zip(fused.parameters, fusion.operands):
            if operand in nodes:
                arguments[parameter] = nodes[operand]
                self._scalars.pop(parameter, None)  # a value that an earlier call of `fused` gave it
            else:
                self._scalars[parameter] = self._scalar(operand) or "?"
        title = f"{self.names.of_instruction(fusion)}: {fusion.attributes.kind.value} -> {fusion.shape.to_text()}"
        yield f"{indent}subgraph cluster_{self._next()} {{"
        yield f'{indent}  label={_quoted(title)}; style="rounded,filled"; fillcolor="#fafafa"; color="#777777";'
        yield from self._computation(fused, arguments, indent + "  ")
        yield f"{indent}}}"
        nodes[fusion] = self._nodes[fused][fused.root]

    def _label(self, instruction: HloInstruction) -> str:
        """The name, the operation with its attributes, the shape: a line each."""
        opcode = instruction.opcode
        if opcode is Opcode.CONSTANT:
            operation = f"constant {literal_text(instruction.attributes.literal, _SHOWN_ELEMENTS)}"
        elif opcode is Opcode.PARAMETER:
            operation = f"parameter {instruction.attributes.number}"
        else:
            operation = opcode.value
        values = [(i, self._scalar(operand)) for i, operand in enumerate(instruction.operands)]
        scalars = [f"operand {i}: {value}" for i, value in values if value is not None]
        attributes = attribute_texts(instruction, self._called_name)
        lines = [self.names.of_instruction(instruction), operation, *attributes, *scalars, instruction.shape.to_text()]
        return "\n".join(line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 3] + "..." for line in lines)

    def _scalar(self, instruction: HloInstruction) -> str | None:
        """The value of a scalar constant, else None."""
        if instruction.opcode is Opcode.CONSTANT and instruction.shape.is_scalar:
            return literal_text(instruction.attributes.literal)
        return self._scalars.get(instruction)

    def _called_name(self, computation: HloComputation) -> str:
        operation = _single_operation(computation)
        name = self.names.of_computation(computation)
        return name if operation is None else f"{name} ({operation})"


def _single_operation(computation: HloComputation) -> str | None:
    """The opcode of a computation that applies a single one to its parameters, else None."""
    others = [i for i in computation.instructions if i.opcode is not Opcode.PARAMETER]
    if len(others) == 1 and others[0] is computation.root and not computation.root.called_computations():
        return computation.root.opcode.value
    return None


def _quoted(text: str) -> str:
    """A string in Graphviz's language. Line ends become `\\n`; other control characters are removed."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + "".join(c for c in text if c.isprintable()) + '"'
