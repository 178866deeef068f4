"""Programs of symbolic sizes: shapes that users write (`shapes.py`), sizes as values while a function is traced
(`values.py`), and programs for the sizes of a call (`programs.py`)."""
