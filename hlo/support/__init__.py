"""Plain Python without IR: records, lazy values, forks, memory, tracebacks, tables.

Every layer needs these modules. They are in `hlo/` because all other layers may import it, and it may import none.
"""
