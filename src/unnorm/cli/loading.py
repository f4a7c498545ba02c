"""Reading back what `unnorm fit` wrote: the job from config.toml, the fits from fit/, the data from where they were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from .config import BUNDLED, Job, checked_job, read_config
from .output import MARK


def saved_job(path: str | Path, data: str | None = None) -> tuple[Job, Path]:
    """The job of an output folder (or of the fit/ inside one), and the folder of its fit."""
    folder = Path(path)
    if not folder.is_dir():
        raise InputError(f"There is no folder {str(path)!r}; expected the output of unnorm fit.")
    home = folder if (folder / MARK).is_file() else folder.resolve().parent
    if not (home / MARK).is_file() or not (home / "fit").is_dir():
        raise InputError(f"{str(path)!r} is not an output of unnorm fit: it has no {MARK} and fit/.")
    job = checked_job(read_config(home / MARK), source=str(home / MARK))
    return replace(job, data=data or _found(job.data, home)), home / "fit"


def _found(data: str, home: Path) -> str:
    """The data as named, from here or from beside the output."""
    if data == BUNDLED or Path(data).exists():
        return data
    beside = home.resolve().parent / data
    return str(beside) if beside.exists() else data


def needs_data(job: Job) -> None:
    """Refuse to go on where the data are no longer where they were."""
    if job.data != BUNDLED and not Path(job.data).is_file():
        raise InputError(f"The data {job.data!r} are not where they were; pass --data FILE.")


def load_fits(job: Job, folder: Path, model: Any) -> Any:
    """The Fit or FitGroup in `folder`; both have `simulate` and `save`."""
    from ..groups import load_group
    from ..results.saving import load

    return load(folder, model=model) if job.by is None else load_group(folder, model=model)
