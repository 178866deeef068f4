"""The examples' shared code, none of it about hloom: the command line, the progress bar, the look of the pictures."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # a file, no window: works without a display

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from PIL import Image  # comes with matplotlib
from tqdm import tqdm

INK, QUIET, GRID = "#1d2733", "#6b7885", "#e6eaee"
BLUE, RED, GOLD, GREEN = "#2a6f97", "#c1121f", "#d98e04", "#3a7d44"


# ---- the command line


def parse(description: str | None, picture: str, **numbers: tuple[int, str]) -> argparse.ArgumentParser:
    """A parser with `--out`, `--seed`, and an option for each of `numbers`: its default, which is above 0, and help."""

    def positive(text: str) -> int:
        if (number := int(text)) < 1:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return number

    def png(text: str) -> Path:
        if not text.endswith(".png"):
            raise argparse.ArgumentTypeError(f"{text}: the picture is a PNG; give it a name that ends in .png")
        return Path(text)

    parser = argparse.ArgumentParser(
        description=(description or "").split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    for name, (default, words) in numbers.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=positive, default=default, metavar="N", help=words)
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers")
    parser.add_argument("--out", type=png, default=Path("out") / picture, metavar="PNG", help="the picture")
    return parser


def run(main: Callable[[], None], *known: type[Exception]) -> None:
    """Call `main`; Ctrl-C and errors of the user's files (`known`) end the program with one line, not a traceback."""
    try:
        main()
    except (OSError, *known) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        sys.exit(130)


def bar(total: int, unit: str) -> Any:
    """A progress bar, which is gone at the end, and absent where the output is no terminal."""
    return tqdm(total=total, unit=f" {unit}", unit_scale=True, disable=None, leave=False)


# ---- pictures


def figure(title: str, subtitle: str, height: float) -> Figure:
    """An empty picture, 10 inches wide, with a title and a line below it. Panels go below 1 - 0.85 / `height`."""
    made = plt.figure(figsize=(10, height), dpi=110, facecolor="white")
    made.text(0.06, 1 - 0.35 / height, title, fontsize=14.5, color=INK, weight="bold", parse_math=False)
    made.text(0.06, 1 - 0.6 / height, subtitle, fontsize=10.5, color=QUIET, parse_math=False)
    return made


def style(axes: Axes, title: str, x: str = "", y: str = "") -> None:
    """The look of a panel: its title at the left, quiet axes, a faint grid below the data."""
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.set_xlabel(x, fontsize=9.5, color=QUIET)
    axes.set_ylabel(y, fontsize=9.5, color=QUIET)
    axes.tick_params(colors=QUIET, labelsize=9)
    axes.grid(True, color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#c9d1d9")


def log_scale(axis: Axis) -> None:
    """Powers of ten in steps of 1, 2, 5, as plain numbers."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def legend(axes: Axes, **where: Any) -> None:
    axes.legend(frameon=False, fontsize=9.5, labelcolor=INK, **where)


def save(picture: Figure, path: Path) -> None:
    """Write a PNG of 128 colours, which is a third as large as one of all colours and looks the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = io.BytesIO()
    picture.savefig(pixels)
    plt.close(picture)
    Image.open(pixels).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
