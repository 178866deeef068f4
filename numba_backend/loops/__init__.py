"""Loop programs: the form of a kernel before it is printed or compiled.

A loop program is a small, typed, structured program: loops, branches, loads and stores through pointers, local
variables, local arrays, arithmetic. `expressions.py` and `statements.py` have its nodes, `typing.py` the types of
results, `printer.py` its one printer, `reader.py` the way back from text, `rewrite.py` what is done to whole programs.
Nothing here knows HLO, and nothing here imports Numba.

The printed text is Python that Numba compiles, and is a kernel's identity. Types are Numba's: operators on integers
compute in 64 bits, and the operands of one operator have one type.
"""
