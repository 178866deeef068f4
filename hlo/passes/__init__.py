"""Passes over modules, by stage; manager.py, which runs them, and record.py, what it keeps of each; rewrite.py and
patterns.py, which help to write passes; rules.py and rewriter.py, by which tables of rules are passes.

A pass knows no backend: what a backend chooses is a field of the pass. The list of passes is not here: each backend
composes its list (`numba_backend/pipeline.py`).
"""
