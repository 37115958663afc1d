"""The wheel and the sdist, built once for all packaging tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from distributions import Distributions, build_distributions, unpack


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return build_distributions(tmp_path_factory.mktemp("distributions"))


@pytest.fixture(scope="session")
def installed(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that holds the installed wheel and nothing else."""
    site = tmp_path_factory.mktemp("site")
    unpack(distributions.wheel, site)
    return site
