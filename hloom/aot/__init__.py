"""`hloom.aot`: programs compiled ahead of time, for C and C++, for any target that LLVM knows. See docs/aot.md.

Names are loaded when they are first used: a process that only loads a program imports neither the compiler nor Numba.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..namespaces import publish as _publish

if _TYPE_CHECKING:
    from ..hlo.subgraph import FeedError
    from ..numba_backend.ahead.blas import BlasError
    from ..numba_backend.ahead.targets import TargetMachine, TargetError
    from .compiling import AotProgram, compile
    from .headers import IdentifierError, Slot
    from .loading import LoadedProgram, load

__all__ = [
    "AotProgram", "BlasError", "FeedError", "IdentifierError", "LoadedProgram", "Slot", "TargetError", "TargetMachine",
    "compile", "load",
]  # fmt: skip

_publish(
    __name__,
    later={
        "FeedError": "hlo.subgraph",
        "BlasError": "numba_backend.ahead.blas",
        **dict.fromkeys(("TargetMachine", "TargetError"), "numba_backend.ahead.targets"),
        **dict.fromkeys(("AotProgram", "compile"), "aot.compiling"),
        **dict.fromkeys(("IdentifierError", "Slot"), "aot.headers"),
        **dict.fromkeys(("LoadedProgram", "load"), "aot.loading"),
    },
)
