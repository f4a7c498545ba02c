"""One small use of everything that needs an extra; `.ci/extras.py` and `.ci/floors.py` run it in fresh environments.

python .ci/uses.py dask geo          # with these extras: the uses must succeed
python .ci/uses.py --without dask    # without them: the error must name the extra and the command that installs it
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import unnorm as un
from unnorm.errors import MissingLibraryError


def _toy() -> tuple[Any, Any]:
    model = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
    return model, un.transitions(un.datasets.toy_chain(100, 0.5, 5.0, rng=1))


def _wave() -> dict[str, np.ndarray]:
    x = np.linspace(0.0, 1.0, 200)
    return {"x": x, "y": np.sin(6 * x) + 0.1 * np.cos(99 * x)}


def workers(folder: Path) -> None:
    model, obs = _toy()
    specs = {"exact": {"objective": un.Exact()}, "poisson": {"objective": un.Poisson()}}
    un.compare(model, obs, specs, rng=1, workers=2)


def geotiff(folder: Path) -> None:
    from unnorm.data.covariates.map_files import read_geotiff

    path = folder / "height.tif"
    try:
        import rasterio
    except ImportError:
        path.write_bytes(b"II*\0")
    else:
        at = rasterio.transform.from_origin(0.0, 3.0, 1.0, 1.0)
        grid = {"driver": "GTiff", "width": 4, "height": 3, "count": 1, "dtype": "float64", "transform": at}
        with rasterio.open(path, "w", **grid) as raster:
            raster.write(np.arange(12.0).reshape(1, 3, 4))
    cells = read_geotiff(path, "The map")
    assert cells.z[0, 3] == 3.0
    assert cells.x[0] == 0.5


def projection(folder: Path) -> None:
    table = {"t": np.arange(3.0) * 60, "x": np.array([7.0, 7.001, 7.002]), "y": np.array([51.0, 51.0, 51.0])}
    track = un.track(table, time="t", x="x", y="y", crs="EPSG:4326")
    assert abs(np.diff(track.x)[0] - 70.2) < 0.2  # metres in a thousandth of a degree of longitude, at 51° N


def parquet(folder: Path) -> None:
    from unnorm._base.files import read_table

    path = _parquet(folder)
    assert len(read_table(path)["x"]) == 200


def gam_of_files(folder: Path) -> None:
    assert un.gam("y ~ s(x)", _parquet(folder)).n == 200


def _parquet(folder: Path) -> Path:
    path = folder / "wave.parquet"
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        path.write_bytes(b"PAR1")
    else:
        pq.write_table(pa.table(_wave()), path)
    return path


def scanpath_model(folder: Path) -> None:
    rng = np.random.default_rng(1)
    path = {"x": 60 * rng.random(200), "y": 40 * rng.random(200), "i": np.arange(200)}
    obs = un.transitions(path, y=("x", "y"), order="i")
    fit = un.fit(un.Additive("step", un.Box((0, 60), (0, 40))), obs, un.Logistic(per_point=5), rng=2)
    model = un.pysaliency.scanpath_model(fit)
    log_p = model.conditional_log_density(np.zeros((40, 60, 3)), [30.0], [20.0], [0.0])
    assert abs(np.exp(log_p).sum() - 1) < 0.01


def estimator(folder: Path) -> None:
    from unnorm.sklearn import GAM

    wave = _wave()
    assert GAM().fit(wave["x"][:, None], wave["y"]).score(wave["x"][:, None], wave["y"]) > 0.9


def stochastic_gradients(folder: Path) -> None:
    model = un.ExponentialFamily(lambda y: (y, -0.5 * y**2), ("a", "b"), un.Interval(-1, 1))
    obs = un.iid(un.datasets.toy_chain(2000, 0.8, 0.0, rng=1))
    un.fit(model, obs, un.Poisson(), solver=un.SGD(steps=200, batch=200), rng=1)


def nuts(folder: Path) -> None:
    draws = un.sample(*_toy(), un.NUTS(draws=50, warmup=50, chains=2), normaliser=un.Anchored(), rng=1)
    draws.summary()
    assert "posterior" in draws.tree


def langevin(folder: Path) -> None:
    model = un.ExponentialFamily(lambda y: (y,), ("a",), un.Interval(-1, 1))
    obs = un.iid(un.datasets.toy_chain(200, 0.8, 0.0, rng=1))
    un.sample(model, obs, un.Langevin(draws=200, warmup=100, chains=2, batch=100), rng=1)


def neural_energy(folder: Path) -> None:
    try:
        import equinox as eqx
    except ImportError as error:  # the user's import, not unnorm's
        raise MissingLibraryError(f"{error}: pip install 'unnorm[stochastic]'") from error
    import jax

    network = eqx.nn.MLP(2, "scalar", 4, 1, activation=jax.nn.silu, key=jax.random.key(0))
    energy = un.Energy(lambda net, y: net(y), network, un.Box((-1, 1), (-1, 1)))
    obs = un.iid(np.random.default_rng(1).uniform(-1, 1, (200, 2)))
    with un.errors.hush():  # so few steps do not converge
        fit = un.fit(energy, obs, un.Logistic(un.Uniform()), solver=un.SGD(steps=100, batch=100), rng=1)
    assert np.isfinite(fit.value)


USES: dict[str, tuple[Callable[[Path], None], ...]] = {
    "dask": (workers,),
    "geo": (geotiff, projection),
    "parquet": (parquet, gam_of_files),
    "pysaliency": (scanpath_model,),
    "sklearn": (estimator,),
    "stochastic": (stochastic_gradients, nuts, langevin, neural_energy),
}


def tried(extra: str, without: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for use in USES[extra]:
            try:
                use(Path(folder))
            except MissingLibraryError as error:
                if not without:
                    raise
                if f"pip install 'unnorm[{extra}]'" not in str(error):
                    raise SystemExit(f"{extra}, {use.__name__}: the error names no command: {error}") from error
                print(f"{extra}, {use.__name__}: {error}", flush=True)
            else:
                if without:
                    raise SystemExit(f"{extra}, {use.__name__}: the extra is missing, and nothing was said.")
                print(f"{extra}, {use.__name__}: works", flush=True)


if __name__ == "__main__":
    without = "--without" in sys.argv
    for extra in [one for one in sys.argv[1:] if not one.startswith("--")] or USES:
        tried(extra, without)
