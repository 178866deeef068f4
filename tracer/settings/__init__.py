"""Settings: the class (`setting.py`), all of them (`config.py`, `of_jax.py`), and setting them from the environment and
the command line.

Importing this folder starts them: `context.py` has the settings of the process from then on.
"""

from . import config as config
