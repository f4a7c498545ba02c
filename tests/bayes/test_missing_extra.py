"""A plain install without optax, blackjax and ArviZ: each says which extra brings it. Samplers are not solvers."""

import sys

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import CombinationError, MissingLibraryError

MODEL = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(-1, 1))
OBS = un.iid(np.linspace(-0.9, 0.9, 20))


@pytest.mark.parametrize(
    ("library", "call"),
    [
        ("optax", lambda: un.fit(MODEL, OBS, un.Poisson(), solver=un.SGD(steps=10), rng=1)),
        ("blackjax", lambda: un.sample(MODEL, OBS, un.NUTS(), rng=1)),
        ("blackjax", lambda: un.sample(MODEL, OBS, un.Langevin(), rng=1)),
        ("arviz", lambda: _draws().rhat),
        ("xarray", lambda: _draws().tree),
    ],
)
def test_the_sentence_names_the_extra(library: str, call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # what Python makes of an import that fails
    with pytest.raises(MissingLibraryError, match=rf"needs {library}.*pip install 'unnorm\[stochastic\]'"):
        call()


def _draws() -> un.Draws:
    return un.Draws(("a",), np.zeros((2, 10, 1)), np.zeros((2, 10, 0)), {})


def test_a_sampler_is_not_a_solver_nor_a_solver_a_sampler() -> None:
    with pytest.raises(CombinationError, match=r"solver must be un\.Newton\(\).*un\.NUTS.*un\.sample.*got NUTS"):
        un.fit(MODEL, OBS, solver=un.NUTS())
    with pytest.raises(CombinationError, match=r"sampler must be un\.Langevin.*got SGD"):
        un.sample(MODEL, OBS, un.SGD())
