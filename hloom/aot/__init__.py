"""`hloom.aot`: programs compiled ahead of time, for C and C++, for any target that LLVM knows. See docs/aot.md."""

from ..hlo.subgraph import FeedError
from ..namespaces import publish as _publish
from ..numba_backend.ahead.targets import Machine, TargetError
from .compiling import AotProgram, compile
from .headers import IdentifierError, Slot
from .loading import LoadedProgram, load

__all__ = [
    "AotProgram", "FeedError", "IdentifierError", "LoadedProgram", "Machine", "Slot", "TargetError", "compile", "load",
]  # fmt: skip

_publish(__name__)
