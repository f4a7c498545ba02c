"""How commands end: signals, full memory and disks, outputs that appear meanwhile; and bars that end full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from unnorm._base import atomic
from unnorm._base.atomic import scratch_folder, take_place, whole_file
from unnorm.cli import run as running
from unnorm.cli.output import whole_folder
from unnorm.errors import InputError


@pytest.fixture
def short(fixations, usual, light):
    return ("fit", fixations, *usual, *light)


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


# --- signals ----------------------------------------------------------------------------------------------------------

SLOW = """
import sys, time
from unnorm.cli import main, run

def make_sections(*_):
    print("writing", flush=True)
    time.sleep(60)

run.make_sections = make_sections
main(sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_leaves_the_fits_and_nothing_else(short, tmp_path, name):
    tokens = [str(token) for token in (*short, "--out", tmp_path / "out")]
    code = ["-c", SLOW, *tokens]
    with subprocess.Popen(
        [sys.executable, *code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"  # the scratch folder is there, with tables in it
        assert len(hidden(tmp_path)) == 1
        process.send_signal(getattr(signal, name))
        _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + getattr(signal, name)
    how = "terminated" if name == "SIGTERM" else "interrupted"
    assert err.startswith(f"unnorm: {how}. What was fitted is in ")
    assert err.endswith("out.part': the same command with --resume goes on from there.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["out.part"]


def test_signals_raise_only_within(unnorm):
    from unnorm.cli.signals import Ended, ends_on_signals

    def end():
        with ends_on_signals():
            signal.raise_signal(signal.SIGHUP)

    own = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests themselves may run under nohup
    try:
        with pytest.raises(Ended) as ended:
            end()
        assert ended.value.code == 128 + signal.SIGHUP
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
        end()
    finally:
        signal.signal(signal.SIGHUP, own)
    before = signal.getsignal(signal.SIGTERM)
    assert unnorm("--version").code == 0
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="POSIX signals")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_that_python_discards_is_raised_again(name):
    """In a `__del__`, where it would be printed and forgotten."""
    from unnorm.cli.signals import Ended, ends_on_signals

    class Deaf:
        def __del__(self):
            signal.raise_signal(getattr(signal, name))
            sum(range(100_000))  # the handler runs here

    def work():
        with ends_on_signals():
            one = Deaf()
            del one
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                pass

    with pytest.raises((Ended, KeyboardInterrupt)):
        work()
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_a_signal_that_a_library_takes_for_its_own_failure(unnorm, short, tmp_path, monkeypatch):
    def deaf(*_):
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:  # as imports of optional modules do
            raise AttributeError("partially initialized module") from None

    monkeypatch.setattr(running, "prepare", deaf)
    ran = unnorm(*short, "--out", tmp_path / "out")
    assert (ran.code, ran.err) == (130, "unnorm: ended by signal 2\n")


# --- memory and disks -------------------------------------------------------------------------------------------------


def test_out_of_memory_is_a_sentence(unnorm, short, tmp_path, monkeypatch):
    def hungry(*_):
        raise MemoryError("Unable to allocate 3.7 GiB for an array")

    monkeypatch.setattr(running, "prepare", hungry)
    ran = unnorm(*short, "--out", tmp_path / "out")
    assert ran.code == 2
    assert "not enough memory (unable to allocate 3.7 GiB for an array): try fewer" in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    "tokens",
    [
        ("demo", "toy", "--n", "1000000000000"),
        ("demo", "toy", "--n", "5"),
        ("reproduce", "toy", "--n", "1000000000000"),
        ("reproduce", "toy", "--reps", "1000000000000"),
        ("reproduce", "toy", "--k", "10,x"),
        ("reproduce", "toy", "--jobs", "0"),
        ("reproduce", "eye", "--k", "1000000000000"),
    ],
)
def test_absurd_numbers_are_refused(unnorm, tokens, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = unnorm(*tokens)
    assert ran.code == 2
    assert tokens[2] in ran.err
    assert "whole number" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_full_disk_is_named(tmp_path):
    def write():
        with whole_folder(tmp_path / "out", force=False), open("/dev/full", "w") as file:
            file.write("x")

    with pytest.raises(InputError, match=r"--out '.*out' cannot be written: No space left on device"):
        write()
    assert list(tmp_path.iterdir()) == []


# --- outputs ----------------------------------------------------------------------------------------------------------


def output(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text)


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_made_meanwhile_stays(tmp_path, force):
    target = tmp_path / "out"

    def write():
        with whole_folder(target, force) as folder:
            output(folder, "ours")
            target.mkdir()
            (target / "mine.txt").write_text("keep me")  # not an earlier output: --force does not remove it either

    with pytest.raises(InputError, match=r"made while this ran; the output is in '.*out-2'"):
        write()
    assert (target / "mine.txt").read_text() == "keep me"
    assert (tmp_path / "out-2" / "config.toml").read_text() == "ours"
    assert hidden(tmp_path) == []


def test_an_earlier_output_is_replaced_with_force(tmp_path):
    target = tmp_path / "out"
    output(target, "old")
    with whole_folder(target, force=True) as folder:
        output(folder, "new")
    assert (target / "config.toml").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("moment", [1, 2])
def test_an_interrupted_replacement_keeps_the_old_folder(tmp_path, monkeypatch, moment):
    """Interrupted before or after either rename: the old folder is in its place, or the new one is."""
    target, calls = tmp_path / "out", []
    output(target, "old")
    rename = os.replace

    def interrupted(*paths):
        calls.append(paths)
        if len(calls) == moment:
            raise KeyboardInterrupt
        rename(*paths)

    def write():
        with scratch_folder(target) as scratch:
            output(scratch, "new")
            monkeypatch.setattr(atomic, "_swapped", lambda *_: False)
            monkeypatch.setattr(os, "replace", interrupted)
            take_place(scratch, target)

    with pytest.raises(KeyboardInterrupt):
        write()
    assert (target / "config.toml").read_text() == "old"
    assert hidden(tmp_path) == []


def test_a_folder_that_cannot_come_back_is_not_removed(tmp_path, monkeypatch):
    target, calls = tmp_path / "out", []
    output(target, "old")
    rename = os.replace

    def broken(*paths):
        calls.append(paths)
        if len(calls) > 1:
            raise OSError("gone")
        rename(*paths)

    def write():
        with scratch_folder(target) as scratch:
            monkeypatch.setattr(atomic, "_swapped", lambda *_: False)
            monkeypatch.setattr(os, "replace", broken)
            take_place(scratch, target)

    with pytest.raises(InputError, match="gone"):
        write()
    (aside,) = tmp_path.iterdir()
    assert (aside / "out" / "config.toml").read_text() == "old"


def test_files_are_whole_or_absent(tmp_path):
    target = tmp_path / "deep" / "f.txt"

    def write(text, fail):
        with whole_file(target) as scratch:
            scratch.write_text(text)
            if fail:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write("half", fail=True)
    assert list(target.parent.iterdir()) == []
    write("whole", fail=False)
    assert target.read_text() == "whole"
    assert target.stat().st_mode & 0o777 == 0o644


# --- what is printed --------------------------------------------------------------------------------------------------


def test_stdout_and_report_count_the_same_transitions(unnorm, short, tmp_path):
    tokens = [token if token != "0,800,0,600" else "300,800,0,600" for token in short]
    ran = unnorm(*tokens, "--outside", "drop", "--out", tmp_path / "r")
    assert ran.code == 0, ran.err
    page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    count = ran.out.split(" transitions")[0]
    assert int(count) < 132
    assert f"144 rows, {count} transitions in" in page
    assert "were dropped" in page


class Bar:
    """What a command did with its bar, in place of tqdm."""

    made: list[Bar]

    def __init__(self, total, **_):
        self.total, self.n, self.disable = total, 0, True
        Bar.made.append(self)

    def set_description_str(self, what, refresh):
        pass

    def update(self, n=1):
        self.n += n

    def close(self):
        pass


def test_bars_end_full(unnorm, short, fixations, usual, light, tmp_path, monkeypatch):
    import tqdm

    from unnorm.report import SECTIONS

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    Bar.made = []
    out = tmp_path / "r"
    models = ("--model", "a=s(step, k=5)", "--model", "b=s(angle, bs='cc', k=5)", "--k", "2")
    for tokens in (
        (*short, "--out", out, "-q"),
        ("report", out, "--out", tmp_path / "again.html"),
        ("simulate", out, "-n", "3", "--out", tmp_path / "s.csv"),
        ("compare", fixations, *usual, "--references", "3", *models),
    ):
        ran = unnorm(*tokens)
        assert ran.code == 0, ran.err
    assert [(bar.n, bar.total) for bar in Bar.made] == [(n, n) for n in (3 + len(SECTIONS), 1 + len(SECTIONS), 3, 3)]


def test_starting_up_is_light():
    code = "import sys, unnorm.cli; print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for heavy in ("jax", "scipy", "numba", "matplotlib", "jinja2", "shapely"):
        assert heavy not in ran.stdout.split(), heavy
