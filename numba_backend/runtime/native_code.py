"""Machine code that comes with the package, so that no process has to compile it.

Every program needs the executor, `call_program` and, mostly, the thread pool: a fifth of a second for LLVM in a process
with an empty store. Their text depends on neither sizes nor types, and they need no instruction that only some
processors have: `native_code/x86_64-linux.txt` has their images (loader.py), and `aarch64-linux.txt` those for ARM. The
kernels of elementary functions (`../elementary.py`) are in a file for each kind of processor that has fused
multiply-adds: `x86_64_v3-linux.txt` for AVX2, `x86_64_v4-linux.txt` for AVX-512 in whole registers,
`aarch64_neon-linux.txt`. Their arithmetic is written out (`math/`), so that all files give the same results bit for
bit, and so does a kernel that is compiled for the processor itself. Another file of each kind has the kernels of
products, convolutions (`policy/`) and transposes with many uses, as their text depends on few sizes or none: LLVM takes
50 ms for one.

An image is compressed, in base 64, under the identity of its text. If the text of a function has changed since, it is
compiled like every other kernel, and so are all functions on other systems. `python tools/native_code.py` says whether
the files are up to date, and writes them; tests compare the code byte by byte with LLVM's code for the text.

    function execute <identity> entry 0 frames 2112
    calls memmove memset
    eNrFVn1M...
"""

from __future__ import annotations

import binascii
import functools
import os
import platform
import zlib
from collections.abc import Iterable
from typing import Any, cast

from ..machine import code_level
from .kernel import KernelSource, StoredKernel
from .loader import LINKS, Image
from .relocations import PROCESSORS

FOLDER = os.path.join(os.path.dirname(__file__), "native_code")
PATHS = {machine: os.path.join(FOLDER, f"{machine}-linux.txt") for machine in PROCESSORS}
"""The files with the runtime's functions, by processor."""
LEVELS = {n: os.path.join(FOLDER, f"{n}-linux.txt") for n in ("x86_64_v3", "x86_64_v4", "aarch64_neon")}
"""The files with elementary functions, by `code_level`."""
KERNELS = {level: os.path.join(FOLDER, f"{level}_kernels-linux.txt") for level in LEVELS}
"""The files with products, convolutions and transposes, by `code_level`."""
KERNEL_NAMES = frozenset((
    "shallow_product", "deep_product", "blocked_product", "convolution_tiles", "convolution_tiles_last",
    "convolution_gradient", "padded", "panels", "fused_transpose",
))  # fmt: skip
"""The names of the kernels in these files. A kernel with such a name may have another text, of other types or with
another schedule."""
_LINE = 84
"""Bytes of code in a line."""


def delivered(kernel: KernelSource | StoredKernel) -> Image | None:
    """The image of a function that comes with the package; None for other kernels, and for functions that are not in
    the file."""
    if not LINKS:
        return None
    if kernel.convention == "native":
        path: str | None = PATHS[platform.machine()]
    elif kernel.name in KERNEL_NAMES:
        path = KERNELS.get(code_level())
    elif isinstance(kernel, KernelSource) and kernel.in_package:
        path = LEVELS.get(code_level())
    else:
        return None
    return None if path is None else find(data(path), kernel.identity)


@functools.cache
def data(path: str) -> str:
    """The text of a file of the package, which may be in a zip archive."""
    found: bytes = cast(Any, __spec__).loader.get_data(path)
    return found.decode()


def write(made_by: str, functions: Iterable[tuple[KernelSource, Image]]) -> str:
    """The text of a file. `made_by`: the compiler's version."""
    lines = ["# Machine code that comes with the package. Made by tools/native_code.py.", f"compiler {made_by}"]
    for function, image in functions:
        lines.append(f"function {function.name} {function.identity} entry {image.entry} frames {image.frames}")
        lines.append(" ".join(("calls", *image.externals)))
        code = zlib.compress(image.code, 9)
        starts = range(0, len(code), _LINE)
        lines += [binascii.b2a_base64(code[at : at + _LINE], newline=False).decode() for at in starts]
    return "\n".join(lines) + "\n"


def find(text: str, identity: str) -> Image | None:
    """The image of a function in the text of a file. Only its part of the text is read."""
    at = text.find(f" {identity} entry ")
    if at < 0:
        return None
    end = text.find("\nfunction ", at)
    head, calls, code = text[at + 1 : end if end >= 0 else len(text)].split("\n", 2)
    _, _, entry, _, frames = head.split(" ")
    return Image(zlib.decompress(binascii.a2b_base64(code)), int(entry), int(frames), tuple(calls.split(" ")[1:]))


def read(text: str) -> list[tuple[str, str, Image]]:
    """(name, identity, image) of each function in the text of a file."""
    heads = [line.split(" ") for line in text.split("\n") if line.startswith("function ")]
    return [(name, identity, cast(Image, find(text, identity))) for _, name, identity, *_ in heads]


def made_by(text: str) -> str:
    """The version of the compiler that made a file."""
    return text.split("\n", 2)[1].removeprefix("compiler ")
