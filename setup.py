"""What pyproject.toml cannot say: the packages, for every kind of checkout, and the description for the package index.

The folders of the library are at the top level, and `hloom/` has a link to each. Where a checkout has no links
(`git config core.symlinks false`, an archive unpacked by a tool that does not know them), a link is a small file, and
its folder is taken from the top level.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

FOLDERS = ("autodiff", "hlo", "numba_backend", "tracer")
ROOT = Path(__file__).resolve().parent


def description(readme: str) -> str:
    """The README for a page of the index, where links to files of the checkout lead nowhere: they become names."""

    def named(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        if picture:
            # no colon in the first word of a line: `email`, which reads metadata, takes it for a header
            return f"(picture `{target}` in the source distribution)"
        return f"`{target}`" if words == target else f"{words} (`{target}`)"

    return re.sub(r"(!?)\[([^\n]*?)\]\((?!https?:|#)([^)\s]+)\)", named, readme)


def packages() -> dict[str, object]:
    """The arguments of `setup` that name them."""
    unlinked = [folder for folder in FOLDERS if not (ROOT / "hloom" / folder).is_dir()]
    found = find_packages(str(ROOT), include=["hloom", "hloom.*"])
    for folder in unlinked:
        found += [f"hloom.{folder}", *(f"hloom.{folder}.{inner}" for inner in find_packages(str(ROOT / folder)))]
    # "." alone makes the editable install a path, which type checkers and editors follow
    return {"packages": found, "package_dir": {"": ".", **{f"hloom.{folder}": folder for folder in unlinked}}}


if __name__ == "__main__":
    setup(
        **packages(),
        long_description=description((ROOT / "README.md").read_text(encoding="utf-8")),
        long_description_content_type="text/markdown",
    )
