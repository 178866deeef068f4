"""Linear algebra kernels. An algorithm is written once, as a text that works on one matrix.

`factorize.py`, `solve.py`, `jacobi.py` are used in three forms: small matrices one after the other, many small matrices
interleaved in vectors (`forms.py`; `algorithms.py` chooses), and matrices of any size in programs that leave the
process (`ahead/linalg.py`). `spectral.py`, `schur.py` and `more_solves.py` are used in the last form alone: in this
process LAPACK does that work.

In the texts `w[i, j]` is an element of a matrix, whatever its place; the loops over `j` go along rows. `it` is the
number of the matrix in its batch. `emit/texts.py` describes the language of these texts.
"""
