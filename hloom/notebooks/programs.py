"""Views of programs in each of their stages, and of what the compiler says about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..hlo.analyses.cost import source_of
from ..hlo.backend import MemoryAnalysis
from ..hlo.ir import HloModule, header_text
from ..hlo.kernel_texts import KernelTexts
from ..hlo.passes.module_diff import Line, ModuleDiff, ModuleDiffs, Side
from ..hlo.passes.record import PassRecords
from ..hlo.pictures.memory_figure import memory_figure
from ..hlo.sizes import is_symbolic
from ..hlo.support.tables import Table
from ..hlo.text.printer import computation_texts
from ..hlo.timeline.summary import Summary
from ..jaxpr.nodes import ClosedJaxpr, Jaxpr
from ..tracer.stages import Compiled, Lowered, Traced
from ..tracer.trees import tree
from .display import naming_cells
from .page import MOST_LINES, Html, details, facts, figure, join, table, tag, title
from .syntax import code, left_out, spans

_FEW_ELEMENTS = 64
"""Larger constants are shown as `{...}`."""
_HOW_TO_READ = (
    "A box is a buffer: as wide as the steps in which it is needed, as high as its bytes. "
    "Boxes beside each other reuse the same bytes; white is padding."
)
_LONG = 200
"""Characters of a type in a line of facts."""


# ---- HLO


def module_view(module: HloModule) -> Iterator[Html]:
    """A module: its computations, which unfold; the entry is open. The user's line of an instruction is shown beside
    the mouse."""
    yield title("HloModule", module.name, _counts(module))
    yield from _hlo(module)


def _counts(module: HloModule) -> str:
    instructions = sum(len(c.instructions) for c in module.computations)
    return f"{_number(len(module.computations), 'computation')}, {_number(instructions, 'instruction')}"


def _hlo(module: HloModule) -> Iterator[Html]:
    yield details("header", code(header_text(module), "hlo"))
    texts = computation_texts(module.computations, module.entry, _FEW_ELEMENTS, metadata=False)
    left = MOST_LINES
    for computation, text in zip(module.computations, texts, strict=True):
        first, *lines = text.split("\n")
        sources = [source_of(instruction) for instruction in computation.instructions[:left]]
        shown = [
            tag("span", spans(line, "hlo"), title=naming_cells(source)) if source else spans(line, "hlo")
            for line, source in zip(lines[:-1][:left], sources, strict=True)
        ]
        is_entry = computation is module.entry
        body = tag("pre", join(shown, "\n"), left_out(len(computation.instructions) - len(shown)))
        yield details(tag("code", spans(first, "hlo")), body, is_open=is_entry)
        left = max(left - len(shown), 0)


# ---- the stages of a function


def traced_view(traced: Traced) -> Iterator[Html]:
    """A traced function: its types, and its jaxpr."""
    yield title("Traced", traced.fun_name)
    yield _signature(traced)
    yield code(str(traced.jaxpr), "jaxpr")


def lowered_view(lowered: Lowered) -> Iterator[Html]:
    """A program before any pass."""
    yield title("Lowered", lowered.module.name, f"before any pass; {_counts(lowered.module)}")
    yield _signature(lowered)
    yield from _hlo(lowered.module)
    sizes = [size for p in lowered.module.entry.parameters for leaf in p.shape.leaves() for size in leaf.dimensions]
    if not any(map(is_symbolic, sizes)):  # the work is known
        yield details("estimated work", table(lowered.cost_analysis().table()))


def compiled_view(compiled: Compiled) -> Iterator[Html]:
    """A compiled program: the HLO after all passes, the passes, the kernels and the memory."""
    module, kernels, passes = compiled.executable.module, compiled.kernels(), compiled.passes()
    memory = compiled.memory_analysis()
    changed = sum(record.changed for record in passes)
    yield title("Compiled", module.name, "after all passes")
    yield _signature(compiled)
    yield details(f"HLO: {_counts(module)}", *_hlo(module))
    yield details(f"passes: {changed} of {len(passes)} changed it", *_passes(passes))
    yield details(f"kernels: {len(kernels)}", *_kernels(kernels))
    yield details(f"memory: {memory.peak_memory_in_bytes:,} bytes", *_memory(memory))
    yield details("estimated work before fusion", table(compiled.cost_analysis().table()))


def jaxpr_view(jaxpr: ClosedJaxpr | Jaxpr) -> Iterator[Html]:
    """A jaxpr, in colours."""
    yield code(str(jaxpr), "jaxpr")


def _signature(stage: Traced | Lowered | Compiled) -> Html:
    donated = [str(k) for k in stage.donate_argnums]
    return facts(
        ("arguments", _types(tree.leaves(stage.in_avals))),
        ("results", _types(tree.leaves(stage.out_info))),
        ("donated arguments", ", ".join(donated)),
    )


def _types(avals: Sequence[Any]) -> str:
    text = ", ".join([f"{a.dtype.name}[{','.join(map(str, a.shape))}]" for a in avals]) or "none"
    return text if len(text) <= _LONG else f"{text[:_LONG]}… ({len(avals)} arrays)"


# ---- passes, kernels, memory


def passes_view(passes: PassRecords) -> Iterator[Html]:
    """The passes that changed the program, and all of them below."""
    yield title("Passes", "", f"{sum(r.milliseconds for r in passes):.1f} ms")
    yield from _passes(passes)


def _passes(passes: PassRecords) -> Iterator[Html]:
    whole = passes.table()
    rows = [row for record, row in zip(passes, whole.rows) if record.changed or record.unsettled]
    quiet = len(passes) - len(rows)
    if rows:
        yield table(Table(whole.headings, rows, whole.numbers))
    if quiet or not rows:
        yield details(f"all {len(passes)} passes: {quiet} changed nothing", table(whole))


def diffs_view(diffs: ModuleDiffs) -> Iterator[Html]:
    """Each difference."""
    for diff in diffs:
        yield from diff_view(diff)


def diff_view(diff: ModuleDiff) -> Iterator[Html]:
    """The lines that passes took out and put in, in colours, with the computation of each group."""
    yield title("Diff", diff.title, diff.about)
    if diff.applications:
        text = "\n".join([str(application) for application in diff.applications])
        lines = [_application_line(line) for line in text.splitlines()[:MOST_LINES]]
        shown = tag("pre", join(lines, "\n"), left_out(text.count("\n") + 1 - len(lines)))
        yield details(f"{_number(len(diff.applications), 'rule')} fired, one by one", shown)
    left, groups = MOST_LINES, list(diff.groups())
    for group in groups:
        lines = [_diff_line(line) for line in group.lines[:left]]
        rest = len(group.lines) - len(lines)
        yield details(tag("code", group.computation), tag("pre", join(lines, "\n"), left_out(rest)), is_open=True)
        left = max(left - len(lines), 0)
    if not groups:
        yield tag("div", "no line differs", class_="faint")


def _diff_line(line: Line) -> Html:
    text = join([f"{line.side.value} ", spans(line.text, "hlo")])
    return text if line.side is Side.BOTH else tag("span", text, class_=line.side.name.lower())


def _application_line(line: str) -> Html:
    """A line of the text of an application: the name of a rule, or an instruction with a sign."""
    side = next((side for side in Side if line.startswith(f"  {side.value} ")), None)
    return join([line]) if side is None else _diff_line(Line(side, line[4:]))


def kernels_view(kernels: KernelTexts) -> Iterator[Html]:
    """The table of kernels, and the text of each one."""
    yield title("Kernels", "", f"{len(kernels)} different ones")
    yield from _kernels(kernels)


def _kernels(kernels: KernelTexts) -> Iterator[Html]:
    yield table(kernels.table())
    left = MOST_LINES
    for name, text in kernels.items():
        algorithm, schedule = getattr(text, "algorithm", None), getattr(text, "schedule", ())
        about = facts(
            ("computes", "" if algorithm is None else str(algorithm)),
            ("in this order", ", ".join(map(str, schedule))),
        )
        yield details(tag("code", name), about, code(text.strip(), _language(text), left), is_open=len(kernels) <= 2)
        left = max(left - text.count("\n"), 1)


def _language(text: str) -> str:
    return "python" if "def " in text else "hlo"


def memory_view(memory: MemoryAnalysis) -> Iterator[Html]:
    """The buffers over time, and the bytes by purpose."""
    yield title("Memory", "", f"{memory.peak_memory_in_bytes:,} bytes at most")
    yield from _memory(memory)


def _memory(memory: MemoryAnalysis) -> Iterator[Html]:
    if memory.report is not None and memory.report.rows:
        yield figure(memory_figure(memory.report))
        yield tag("div", _HOW_TO_READ, class_="faint")
    yield table(memory.table())
    if memory.text:
        yield details("each buffer", code(memory.text))


# ---- profiles


def summary_view(summary: Summary) -> Iterator[Html]:
    """The tables of a profile."""
    for shown, said in summary.parts():
        if shown is not None:
            yield table(shown)
        if said:
            yield tag("div", said, class_="faint")


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
