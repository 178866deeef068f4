"""Where values lie in memory: liveness, sharing, offsets, the assignment of all buffers, its checker and its report.
What enters looks at a scheduled module and changes nothing. A pass that acts on it is in `hlo/passes/`.
"""
