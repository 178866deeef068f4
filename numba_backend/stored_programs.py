"""Keep whole programs on disk, beside the kernels: a process that traces a known program runs no pass and no emitter.

A program is found by a hash of all that decides it: the meaning of the unoptimised HLO (hlo/content_key.py: without
names and lines of the user's program), the target, the machine with its caches, the number of threads, the settings,
and what `environment_key` collects: the CPU, the versions of the libraries, the files of this library
(`runtime/installation.py`). So entries never become stale, only unused.

A stored program (`runtime/portable.py`) is data: words, names of kernels in the store, bytes of constants, shapes as
text. It is trusted as kernels are (`runtime/store_disk.py`) and deleted with them. A program that calls Python, or
holds an address that has no name, is not stored: each process compiles it.

Passes run as usual if a user wants to see or check them (HLOOM_VERIFY_PASSES, HLOOM_DUMP_TO, HLOOM_CHECK_RULES). If a
user asks for the kernels or the buffers of a program from the store, the passes run then.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ..hlo.content_key import NoKey, content_key, data_key
from ..hlo.ir import HloModule
from ..hlo.shape import Shape
from ..hlo.support.sha256 import sha256
from ..hlo.target import Target
from ..hlo.targets import TARGETS
from .executable import Details, Frame, NumbaExecutable, ready
from .machine import target_machine
from .runtime import program as programs
from .runtime.installation import installation
from .runtime.portable import PortableProgram
from .runtime.store import PROGRAM, default_store, environment_description, version_of
from .runtime.threads import get_num_threads
from .settings import is_watched, with_effect

_MOST_BYTES = 1 << 24
"""A larger program is not kept: its constants would fill the disk."""


def key_of(module: HloModule, target: Target) -> str | None:
    """The name of the module's program on disk; None if it is not to be looked for there."""
    if default_store().folder is None or is_watched():
        return None
    if type(target) not in TARGETS.values():  # a user's own: its effects may change
        return None
    environment = environment_key()
    if environment is None:
        return None
    try:
        settings = None if target.name == "cpu" else data_key(target)
        about = type(target).name, settings, get_num_threads(), target_machine().to_text()
        content = content_key(module)
    except NoKey:
        return None
    state = sha256(repr((about, environment, with_effect())).encode())
    state.update(content)
    return state.hexdigest()


def load(key: str, module: HloModule, find_details: Callable[[], Details]) -> NumbaExecutable | None:
    """The executable of a module, if its program and all its kernels are stored. `find_details`: the stages; they run
    when a user asks for their results."""
    stored = default_store().data(key, PROGRAM)
    if stored is None:
        return None
    header, data = _from_bytes(stored)
    found = PortableProgram.from_parts(header, data)
    program = programs.load(found)
    if program is None:
        return None
    frame = Frame(
        module.name,
        tuple([Shape.parse(text) for text in header["parameters"]]),
        tuple([Shape.parse(text) for text in header["results"]]),
        tuple([(k, p) for k, p in header["donated"]]),
        header["arena_size"],
        module.replica_count,
        module.num_partitions,
    )
    return ready(frame, program, find_details)


def keep(key: str, frame: Frame, program: PortableProgram) -> None:
    """Store a program."""
    header, data = program.to_parts()
    header["parameters"] = [shape.to_text() for shape in frame.parameters]
    header["results"] = [shape.to_text() for shape in frame.results]
    header["donated"], header["arena_size"] = frame.donated, frame.arena_size
    block = _to_bytes(header, data)
    if len(block) <= _MOST_BYTES:
        default_store().keep_program(key, block)


def _to_bytes(header: dict[str, Any], data: bytes) -> bytes:
    """A header and bytes as one block: the length of the header, its JSON, the bytes."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text + data


def _from_bytes(block: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the bytes of such a block."""
    end = 8 + int.from_bytes(block[:8], "little")
    return json.loads(block[8:end]), block[end:]


@functools.cache
def environment_key() -> str | None:
    """A program depends on this besides its module and settings: the machine, the versions of the libraries that
    constants are computed with, this library. None where the state of its files is not known."""
    own = installation()
    if own is None:
        return None
    versions = sys.version, np.__version__, ml_dtypes.__version__, version_of("scipy", "version.py")
    return repr((environment_description(), versions, own))
