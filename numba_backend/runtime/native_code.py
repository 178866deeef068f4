"""The runtime's own functions as machine code that comes with the package, so that no process has to compile them.

Every program needs the executor, `call_program` and, mostly, the thread pool: a fifth of a second for LLVM in a process
with an empty store. Their text depends on neither sizes nor types, and they need no instruction that only some
processors have. `native_code/x86_64-linux.txt` has their images (loader.py), in hexadecimal, each under the identity of
its text: a function whose text has changed since is compiled like every other kernel, and so are all of them on other
systems. `python tools/native_code.py` says whether the file is up to date, and writes it; a test compares the code
byte by byte with what LLVM makes of the text.

    function execute <identity> entry 0 frames 2112
    calls memmove memset
    4155415641...
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from .kernel import KernelSource, StoredKernel
from .loader import LINKS, Image

PATH = Path(__file__).parent / "native_code" / "x86_64-linux.txt"
_WIDTH = 112


def delivered(kernel: KernelSource | StoredKernel) -> Image | None:
    """The image of a function of the runtime; None for a kernel, and for what is not in the file."""
    if kernel.convention != "native" or not LINKS:
        return None
    return _images().get(kernel.identity)


@functools.cache
def _images() -> dict[str, Image]:
    text: bytes = cast(Any, __spec__).loader.get_data(str(PATH))  # the file may be in a zip archive
    return {identity: image for _, identity, image in read(text.decode())}


def write(made_by: str, functions: Iterable[tuple[KernelSource, Image]]) -> str:
    """The text of the file. `made_by`: the compiler's version."""
    lines = ["# Machine code of the functions of the runtime. Made by tools/native_code.py.", f"compiler {made_by}"]
    for function, image in functions:
        lines.append(f"function {function.name} {function.identity} entry {image.entry} frames {image.frames}")
        lines.append(" ".join(("calls", *image.externals)))
        code = image.code.hex()
        lines += [code[at : at + _WIDTH] for at in range(0, len(code), _WIDTH)]
    return "\n".join(lines) + "\n"


def read(text: str) -> list[tuple[str, str, Image]]:
    """(name, identity, image) of each function in the text of a file."""
    found = []
    for part in text.split("\nfunction ")[1:]:
        head, calls, code = part.split("\n", 2)
        name, identity, _, entry, _, frames = head.split(" ")
        image = Image(bytes.fromhex(code), int(entry), int(frames), tuple(calls.split(" ")[1:]))
        found.append((name, identity, image))
    return found


def made_by(text: str) -> str:
    """The version of the compiler that made a file."""
    return text.split("\n", 2)[1].removeprefix("compiler ")
