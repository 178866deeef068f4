"""The test suites: JAX's own, and those of libraries that are built on JAX."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from . import checkout


@dataclass(frozen=True)
class Suite:
    """Tests in a repository.

    library: the module that the tests are of; folder: what is cut out of the repository, with the tests in it;
    sample: one test in so many is a sample of some 50; repository, ref: where the tests of this version are.
    """

    library: str
    repository: str
    ref: str
    folder: str
    sample: int = 1

    def cut(self, repository: Path, ref: str, folder: Path) -> Path:
        """The folder with the tests at `ref`; made unless it is there. repository: a git repository, or the tests."""
        if self.library == "jax":
            return checkout.cut(repository, ref, folder)
        return checkout.cut_folder(repository, ref, self.folder, folder)

    def files(self, place: Path) -> list[Path]:
        """The files with tests."""
        if self.library == "jax":
            return checkout.front_end(place)
        folder = place / self.folder
        return sorted({*folder.rglob("*_test.py"), *folder.rglob("test_*.py")})


SUITES = {
    suite.library: suite
    for suite in (
        Suite("jax", "jax-ml/jax", "jax-v0.10.2", "tests"),
        Suite("optax", "google-deepmind/optax", "v0.2.8", "optax", 40),
        Suite("chex", "google-deepmind/chex", "v0.1.92", "chex", 20),
        Suite("equinox", "patrick-kidger/equinox", "v0.13.8", "tests", 25),
        Suite("lineax", "patrick-kidger/lineax", "v0.1.1", "tests", 150),
        Suite("optimistix", "patrick-kidger/optimistix", "v0.1.0", "tests", 40),
        Suite("diffrax", "patrick-kidger/diffrax", "v0.7.2", "test", 30),
        Suite("jaxopt", "google/jaxopt", "jaxopt-v0.8.5", "tests", 30),
        Suite("haiku", "google-deepmind/dm-haiku", "f4d858a", "haiku", 60),
        Suite("distrax", "google-deepmind/distrax", "f51bffc", "distrax", 400),
        Suite("ott", "ott-jax/ott", "0.6.0", "tests", 60),
        Suite("flax", "google/flax", "18f8f311", "tests", 60),
        Suite("numpyro", "pyro-ppl/numpyro", "0b935d48", "test", 200),
        Suite("blackjax", "https://pypi.org/project/blackjax", "1.7.1", "tests", 30),
    )
}
"""The suites, by the library's module."""
