"""The packages, which pyproject.toml cannot list for every kind of checkout; all else is there.

The folders of the library are at the top level, and `hloom/` has a link to each. Where a checkout has no links
(`git config core.symlinks false`, an archive unpacked by a tool that does not know them), a link is a small file, and
its folder is taken from the top level.
"""

from pathlib import Path

from setuptools import find_packages, setup

FOLDERS = ("autodiff", "hlo", "numba_backend", "tracer")
unlinked = [folder for folder in FOLDERS if not Path("hloom", folder).is_dir()]

packages = find_packages(include=["hloom", "hloom.*"])
for folder in unlinked:
    packages += [f"hloom.{folder}", *(f"hloom.{folder}.{inner}" for inner in find_packages(folder))]

# "." alone makes the editable install a path, which type checkers and editors follow
setup(packages=packages, package_dir={"": ".", **{f"hloom.{folder}": folder for folder in unlinked}})
