"""`hloom layout`: where the elements of an array are stored; `layout_of_module.py` is for modules."""

from __future__ import annotations

import shutil
import sys
from argparse import Namespace
from pathlib import Path

from ..hlo.errors import ShapeError
from ..hlo.pictures.drawing import to_svg
from ..hlo.pictures.layout_figure import layout_figure
from ..hlo.pictures.layout_steps import index_steps, linear_steps
from ..hlo.pictures.layout_text import coloured, layout_text, plain
from ..hlo.pictures.png import write_png
from ..hlo.shape import Shape, read_shape
from ..hlo.support.terminal import shows_colours
from ..hlo.text.scanner import Scanner
from .files import write_text
from .outcome import FINE, UsageError

_WIDTH = 100
"""Characters in a line if the output is not a terminal."""
_ASCII = str.maketrans("│─·…┌┐┬└┘┴├┤┼", "|-.~" + 9 * "+")


def execute(options: Namespace) -> int:
    """SUBJECT is a shape, or a module."""
    if _is_shape(options.subject):
        _refuse(options, "a module", "--target", "--on-device", "--json", "--all")
        _shape(_read_shape(options.subject), options)
    else:
        _refuse(options, "a shape", "--index", "--linear", "--svg", "--png", "--color")
        from .layout_of_module import module_text  # imported late: a shape needs no passes and no backend

        _print(module_text(options))
    return FINE


def _is_shape(subject: str) -> bool:
    """Shapes have brackets. A subject with brackets is a shape unless such a file exists."""
    return subject != "-" and any(c in subject for c in "[{(") and not Path(subject).is_file()


def _refuse(options: Namespace, kind: str, *names: str) -> None:
    """UsageError for options of the other kind of subject."""
    for name in names:
        value = getattr(options, name.removeprefix("--").replace("-", "_"))
        if value is not None and value is not False:
            raise UsageError(f"{name} is for {kind}, and {options.subject!r} is none")


def _read_shape(text: str) -> Shape:
    scanner = Scanner(text, "<shape>")
    shape = read_shape(scanner)
    if not scanner.at_end():
        raise scanner.expected("the end of the shape")
    return shape


def _shape(shape: Shape, options: Namespace) -> None:
    leaves = list(shape.leaves())
    if any(asked is not None for asked in (options.index, options.linear, options.svg, options.png)):
        if not shape.is_array:
            raise UsageError(f"{shape} is no array: give one of its elements to --index, --linear, --svg and --png")
        _steps(shape, options)
        _files(shape, options)
        return
    if not leaves:
        _print(f"{shape} holds no data.\n")
    for number, leaf in enumerate(leaves):
        if shape.is_tuple:
            _print(f"{'' if number == 0 else chr(10)}array {number} of the tuple: ")
        _print(layout_text(leaf, _width(), coloured if _in_colour(options) else plain))


def _steps(shape: Shape, options: Namespace) -> None:
    try:
        if options.index is not None:
            _print(index_steps(shape, options.index))
        elif options.linear is not None:
            _print(linear_steps(shape, options.linear))
    except (IndexError, ShapeError) as error:
        raise UsageError(str(error)) from None


def _files(shape: Shape, options: Namespace) -> None:
    if options.svg is None and options.png is None:
        return
    drawing = layout_figure(shape)
    if options.svg == "-":
        sys.stdout.write(to_svg(drawing))
    elif options.svg is not None:
        write_text(options.svg, to_svg(drawing))
    if options.png is not None:
        try:
            write_png(drawing, options.png)
        except OSError as error:
            raise UsageError(f"cannot write {options.png}: {error.strerror or error}") from None


def _print(text: str) -> None:
    """Write to stdout, in ASCII if it takes nothing else."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = text.translate(_ASCII)
    sys.stdout.write(text)


def _width() -> int:
    return max(shutil.get_terminal_size().columns, 40) if sys.stdout.isatty() else _WIDTH


def _in_colour(options: Namespace) -> bool:
    """As --color says; by default on a terminal that shows colours."""
    return shows_colours() if options.color not in ("always", "never") else bool(options.color == "always")
