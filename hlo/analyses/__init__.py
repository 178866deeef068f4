"""Questions that passes, backends and people ask of a module: cost, trip counts, what layouts cost. Pure functions of
the IR that change nothing. Where values lie in memory is asked in `hlo/buffers/`.
"""
