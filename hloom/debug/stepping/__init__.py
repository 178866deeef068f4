"""`hloom.debug.step`: a program run instruction by instruction, in the manner of Python's debugger.

`execution.py` runs a program in steps, `stops.py` says where to stop, `variables.py` finds the user's names,
`loops.py` finds the iteration in which a long loop goes wrong, `stepper.py` has the interface for programs, `prompt.py`
the one for people, and `start.py` opens either.
"""
