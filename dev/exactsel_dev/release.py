"""``python -m exactsel_dev.release``: build wheel and sdist, install them elsewhere, and test what was installed.

Tests are those of the sdist, from whose folder the packages have been removed: what they import is what was installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = ("exactsel", "heuristics", "certificates/exactsel_certificates", "mapped", "dev")
"""What is removed from the sdist before its tests run; the description of the proof format stays."""

OF_THE_REPOSITORY = (
    "tests/use/test_docs.py::test_links_between_pages_are_good",
    "tests/use/test_house_rules.py",
    "tests/proofs/test_standalone.py::test_it_imports_the_standard_library_and_itself",
)
"""Tests that read the sources."""

EXTRAS = ("cvxpy", "plot", "data", "frames", "sheets")

SKLEARN_TESTS = ("tests/use/test_sklearn.py", "tests/use/test_estimators.py")

WHEEL, SDIST = "wheel", "sdist"


def run(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The finished command, with stdout and stderr in one."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def must(*command: str | Path, cwd: Path | None = None) -> str:
    """The output of a command that has to succeed."""
    done = run(*command, cwd=cwd)
    if done.returncode:
        raise click.ClickException(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}")
    return done.stdout


def built(folder: Path) -> dict[str, Path]:
    """Wheel and sdist, made in the folder and checked; the wheel from the sdist, as installers do."""
    must(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    must(sys.executable, "-m", "twine", "check", "--strict", *folder.iterdir())
    return {WHEEL: next(folder.glob("*.whl")), SDIST: next(folder.glob("*.tar.gz"))}


def tests_of(sdist: Path, folder: Path) -> tuple[Path, Path]:
    """The folder of the sdist without its packages, and the package of the tests' tools, which stays apart."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (place,) = folder.iterdir()
    tools = folder.parent / "tools"
    shutil.copytree(place / "dev", tools)
    for package in PACKAGES:
        shutil.rmtree(place / package)
    return place, tools


def installed(python: str, folder: Path, *requirements: str) -> Path:
    """The interpreter of a new environment that holds these requirements."""
    must(python, "-m", "venv", folder)
    inside = folder / "bin" / "python"
    must(inside, "-m", "pip", "--quiet", "install", *requirements)
    return inside


def oldest() -> list[str]:
    """Requirements that ask for the oldest series of everything exactsel and its extras name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(each for name in EXTRAS for each in extras[name])]
    plain = [each.partition(";")[0].strip() for each in asked if not each.startswith("exactsel[")]
    named = [each.partition(",")[0].partition(">=") for each in plain]
    return [f"{name}=={least}.*" for name, _, least in named if name != "tomli"]


def tested(inside: Path, place: Path, arguments: Sequence[str], jobs: int) -> str:
    """The last line of pytest, after a run that has to succeed."""
    where = must(inside, "-c", "import exactsel; print(exactsel.__file__)", cwd=place).strip()
    if "site-packages" not in where:
        raise click.ClickException(f"the tests would run on {where}, not on the installed package")
    done = run(inside, "-m", "pytest", "-q", "-n", str(jobs), "--dist", "worksteal", *arguments, cwd=place)
    if done.returncode:
        raise click.ClickException(done.stdout[-6000:])
    return done.stdout.strip().splitlines()[-1]


def smoke_tests(place: Path) -> list[str]:
    """Arguments for pytest that run the smoke tier; only files with a test of that tier are collected."""
    files = sorted(path for path in (place / "tests").rglob("test_*.py") if "smoke" in path.read_text(encoding="utf-8"))
    named = [path.relative_to(place).as_posix() for path in files]
    left_out = [f"--deselect={name}" for name in OF_THE_REPOSITORY]
    return ["-m", "smoke and not slow and not long", *left_out, *named]


@click.command(context_settings={"show_default": True})
@click.option("--python", "pythons", multiple=True, default=(sys.executable,), help="Interpreters; can be repeated.")
@click.option(
    "--part",
    "parts",
    type=click.Choice((WHEEL, SDIST)),
    multiple=True,
    default=(WHEEL, SDIST),
    help="What to install; can be repeated.",
)
@click.option("--sklearn", "versions", multiple=True, help="Versions of scikit-learn (1.7, say); can be repeated.")
@click.option("--oldest", "old", is_flag=True, help="Install the wheel with the oldest series of all it asks for.")
@click.option("--jobs", default=os.cpu_count() or 1, help="Processes of the tests.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Keep wheel and sdist in this folder.")
def main(
    pythons: tuple[str, ...], parts: tuple[str, ...], versions: tuple[str, ...], old: bool, jobs: int,
    out: Path | None,
) -> None:  # fmt: skip
    """Install the wheel and the sdist on each Python, and run the smoke tier on what was installed.

    With --oldest it installs the wheel with the oldest libraries it accepts, with --sklearn the wheel with each of
    those versions, for the tests of the estimators.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        packages = built(folder / "dist")
        if out is not None:
            shutil.copytree(folder / "dist", out, dirs_exist_ok=True)
        place, tools = tests_of(packages[SDIST], folder / "tests")

        def report(python: str, what: str, *requirements: str, arguments: Sequence[str]) -> None:
            inside = installed(python, folder / "venv", *requirements)
            must(inside, "-m", "pip", "--quiet", "install", "--no-deps", tools)
            version = must(inside, "-c", "import platform; print(platform.python_version())").strip()
            click.echo(f"Python {version}, {what}: {tested(inside, place, arguments, jobs)}")
            shutil.rmtree(folder / "venv")

        wheel = f"{packages[WHEEL]}[test]"
        for python in pythons:
            for version in versions:
                asked = f"scikit-learn=={version}.*"
                report(python, f"scikit-learn {version}", wheel, asked, arguments=SKLEARN_TESTS)
            if old:
                report(python, "oldest libraries", wheel, *oldest(), arguments=smoke_tests(place))
            for part in () if versions or old else parts:
                report(python, part, f"{packages[part]}[test]", arguments=smoke_tests(place))


if __name__ == "__main__":
    main(prog_name="python -m exactsel_dev.release")
