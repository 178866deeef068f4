"""Symbolic sizes in traced functions: shapes that users write (`shapes.py`), and sizes as values (`values.py`)."""
