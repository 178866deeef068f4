"""`hloom.aot`: programs compiled ahead of time, for C and C++, for any target that LLVM knows. See docs/aot.md.

Names are loaded when they are first used: a process that only loads a program imports neither the compiler nor Numba.
"""

from ..namespaces import publish as _publish

_publish(__name__, examples=("from hloom import aot",))
