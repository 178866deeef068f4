"""The native runtime: kernels from text to machine code, the store that keeps them, and the executor that runs programs.

kernel.py           a kernel's text, parameters and identity        compile.py    text -> object code
numba_frontend.py   text -> LLVM IR; all use of Numba's internals   llvm_backend.py   LLVM IR -> object code -> address
store.py            compiled kernels in memory and on disk          machine.py    intrinsics of the native functions below
executor.py         the native function that walks a program        program.py    programs, built row by row
dialect.py, math/   the names that a kernel's text may use          errors.py     what the runtime raises and warns
"""
