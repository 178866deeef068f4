"""Settings: the class (`setting.py`), all of them (`config.py`, `of_jax.py`), and setting them from the environment and
the command line."""
