"""Symbolic sizes: dimensions of arrays that are expressions of variables, such as `b` or `2*n + 1`.

`expressions.py` has the expressions, `bounds.py` decides comparisons, `scope.py` holds the constraints between
variables, `parser.py` reads expressions, and `arguments.py` finds the variables' values for the shapes of a call's
arguments. A program of symbolic sizes has expressions in the place of integers, in shapes and in attributes.
"""
