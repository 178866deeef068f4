"""The native runtime: kernels from text to machine code, the store that keeps them, the executor that runs programs.

kernel.py           a kernel's text, parameters and identity
compile.py          text -> object code: numba_frontend.py to LLVM IR, llvm_backend.py from there
one_pass.py         the fast way from text to LLVM IR; numba_internals.py: Numba's contexts, and all of its front end
dialect.py, math/   the names that a kernel's text may use
store.py            compiled kernels in memory; store_disk.py: on disk; loader.py: machine code into the process
program.py          programs, built row by row
executor.py         the native function that walks a program; machine.py has the intrinsics that it is written in
call.py             from Python into a program: a native built-in function
threads.py          the thread pool; cpus.py counts CPUs
blas.py             matrix products
memory.py           blocks of memory for outputs and arenas
libc.py             addresses in the C library
errors.py           what the runtime raises and warns
"""
