"""Questions that passes and backends ask of a module: pure functions of the IR that change nothing."""
