"""The kernels of an executable, by name: the result of `compile().kernels()`."""

from __future__ import annotations

from .notebooks import in_notebooks
from .support.tables import Table


class KernelText(str):
    """A kernel's text, and what it was made of."""

    __slots__ = ("algorithm", "instructions", "schedule")
    algorithm: object
    """The algorithm, which prints as a line; None if the kernel has none."""
    schedule: tuple[object, ...]
    """The steps that made loops of the algorithm."""
    instructions: tuple[str, ...]
    """The names of the instructions that call it."""

    def __new__(cls, text: str, notes: tuple[object, ...] = (), instructions: tuple[str, ...] = ()) -> KernelText:
        """`notes`: the algorithm and the steps, or nothing."""
        made = super().__new__(cls, text)
        made.algorithm, made.schedule = (notes[0] if notes else None), notes[1:]
        made.instructions = instructions
        return made


class KernelTexts(dict[str, str]):
    """The text of each distinct kernel. They print as a table, and below it the texts."""

    def table(self) -> Table:
        """A row for each kernel: its name, how many instructions use it, and its lines."""
        rows = []
        for name, text in self.items():
            lines = text.strip().splitlines()
            comments = next((k for k, line in enumerate(lines) if not line.startswith("#")), len(lines))
            rows.append((name, str(max(comments, 1)), str(len(lines) - comments)))
        return Table(("kernel", "uses", "lines"), rows, frozenset({1, 2}))

    def __str__(self) -> str:
        return "\n\n".join([self.table().to_text(), *(text.strip() for text in self.values())])

    def __repr__(self) -> str:
        return self.table().to_text()

    _repr_html_ = in_notebooks
