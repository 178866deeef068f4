"""Settings: what one is (`setting.py`), all of them (`config.py`, `of_jax.py`), and how the environment and the command
line set them."""
