"""Questions that passes, backends and people ask about a module: cost, trip counts, costs of layouts. Pure functions of
the IR that change nothing. `hlo/buffers/` answers where values are in memory.
"""
