"""Passes over modules, by stage. manager.py runs and record.py documents them. rewrite.py and patterns.py
help to write passes; rules.py and rewriter.py make passes of tables of rules.

A pass knows no backend: the choices of a backend are fields of the pass. The list of passes is not here: each backend
composes its list (`numba_backend/pipeline.py`).
"""
