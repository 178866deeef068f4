"""Where values are in memory: liveness, sharing, offsets, the assignment of all buffers, its checker and its report.
Code here reads a scheduled module and changes nothing. A pass that changes one is in `hlo/passes/`.
"""
