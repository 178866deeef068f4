"""Where values lie in memory: liveness, sharing, assignment to offsets, the checker of the answer, the report."""
