"""One table of public functions, and what must hold for each of them on drawn arguments.

    kinds.py     how an argument of each kind is drawn
    rows*.py     the table: for each namespace, which functions take which kinds
    calls.py     functions that take functions, in calls that give them one
    checks.py    what is compared: values, types, errors, derivatives, jit, vmap
    search.py    draws for as long as it is told, and prints what differs

A function is in the table when its name is in a line of `rows*.py`.
"""
