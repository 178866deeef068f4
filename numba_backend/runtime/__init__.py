"""The native runtime: kernels from text to machine code, the store that keeps them, the executor that runs programs.

kernel.py           a kernel's text, parameters and identity
compile.py          text -> object code: frontend.py makes LLVM IR of the text, llvm_backend.py object code of that
one_pass.py         the way to LLVM IR, from a loop program; operators.py: what Python's operators mean there;
                    llvm_values.py: types, constants, casts
numba_frontend.py   the other way: Numba itself
dialect.py, math/   the names that a kernel's text may use; numba_dialect.py: these as Numba's intrinsics
native_code.py      the machine code that comes with the package: the runtime's own, and elementary functions
store.py            compiled kernels in memory; store_disk.py: on disk; loader.py: loads machine code into the process
program.py          builds programs, row by row; a row is an instruction of a program's table
executor.py         the native function that runs a program's rows; machine.py: the intrinsics that its source uses
call.py             from Python into a program: a native built-in function; executor_hook.py: which executor it takes
threads.py          the thread pool
blas.py             matrix products; lapack.py: LAPACK routines over batches
memory.py           blocks of memory for outputs and arenas
libc.py             the C library: addresses of functions, memory from the system
errors.py           what the runtime raises and warns
"""
