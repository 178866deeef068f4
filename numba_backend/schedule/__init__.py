"""Algorithms, and schedules that make loop programs of them.

    algorithm.py    what is computed: dimensions, where elements lie, an element's expression
    steps.py        the steps of a schedule: plain data
    nest.py         an algorithm after all steps: its loops; refuses a step that would change results
    apply.py        a nest -> a loop program: walks the loops from the outside in
    offsets.py      where the walk is: open loops, and the offsets of elements there
    copies.py       the step `Pack`: operands in local arrays
    sums.py         the step `Accumulate`: sums in registers, and what is added to them
    bands.py        the step `Band`: parts of a result or of an operand that need not be computed
    padding.py      the step `Padding`: terms with zeros around an array
    text.py         schedules as text, as they are printed and read
    given.py        a kernel under a schedule that a user gives

Which schedule an algorithm gets on a machine is decided in `policy/` alone.
"""
