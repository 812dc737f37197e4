"""``python -m benchmarks.packages``: build wheel and sdist, install them elsewhere, and test what was installed.

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

from benchmarks.paper.tables import Row, markdown
from exactsel.files import write_bytes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = ("exactsel", "heuristics", "certificates/exactsel_certificates", "mapped")
"""What is removed from the sdist before its tests run; the checker's description of the format stays."""

OF_THE_REPOSITORY = (
    "tests/use/test_docs.py::test_links_between_pages_are_good",
    "tests/proofs/test_standalone.py::test_it_imports_the_standard_library_and_itself",
)
"""Tests that read the sources."""

EXTRAS = ("cvxpy", "plot", "data", "frames", "sheets")

SKLEARN_TESTS = ("tests/use/test_sklearn.py", "tests/use/test_estimators.py")


def run(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command's end, with stdout and stderr in one."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def must(*command: str | Path, cwd: Path | None = None) -> str:
    """What the command says, which has to end well."""
    done = run(*command, cwd=cwd)
    if done.returncode:
        raise click.ClickException(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}")
    return done.stdout


def built(folder: Path) -> tuple[Path, Path]:
    """Wheel and sdist, made in the folder; the wheel from the sdist, as installers do."""
    must(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    must(sys.executable, "-m", "twine", "check", "--strict", *folder.iterdir())
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def tests_of(sdist: Path, folder: Path) -> Path:
    """The tests of the sdist without the packages they are about."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (place,) = folder.iterdir()
    for package in PACKAGES:
        shutil.rmtree(place / package)
    return place


def installed(python: str, folder: Path, *requirements: str) -> Path:
    """The interpreter of a new environment in which these are installed."""
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
    return [f"{name}=={least}.*" for name, _, least in (each.partition(">=") for each in plain) if name != "tomli"]


def tested(inside: Path, place: Path, arguments: Sequence[str], jobs: int) -> str:
    """The last line of pytest."""
    done = run(inside, "-m", "pytest", "-q", "-n", str(jobs), "--dist", "worksteal", *arguments, cwd=place)
    if done.returncode:
        click.echo(done.stdout[-6000:], err=True)
    where = must(inside, "-c", "import exactsel; print(exactsel.__file__)", cwd=place).strip()
    if "site-packages" not in where:
        raise click.ClickException(f"the tests were about {where}, and not about what was installed")
    return done.stdout.strip().splitlines()[-1]


@click.command(context_settings={"show_default": True})
@click.option("--python", "pythons", multiple=True, default=(sys.executable,), help="Interpreters; can be repeated.")
@click.option("--sklearn", "versions", multiple=True, help="Versions of scikit-learn (1.7, say); can be repeated.")
@click.option("--oldest", "old", is_flag=True, help="The wheel with the oldest series of all it asks for.")
@click.option("--jobs", default=os.cpu_count() or 1, help="Processes of the tests.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Markdown file.")
def main(pythons: tuple[str, ...], versions: tuple[str, ...], old: bool, jobs: int, out: Path | None) -> None:
    """Install the wheel and the sdist on each Python and run the smoke tier; with --oldest the wheel with the oldest
    libraries it accepts; with --sklearn the wheel with each of those versions, and the tests of the estimators.
    """
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wheel, sdist = built(folder / "dist")
        place = tests_of(sdist, folder / "tests")

        def report(python: str, what: str, *requirements: str, arguments: Sequence[str]) -> None:
            inside = installed(python, folder / "venv", *requirements)
            version = must(inside, "-c", "import platform; print(platform.python_version())").strip()
            rows.append({"Python": version, "installed": what, "tests": tested(inside, place, arguments, jobs)})
            click.echo("  ".join(map(str, rows[-1].values())), err=True)
            shutil.rmtree(folder / "venv")

        for python in pythons:
            for version in versions:
                report(
                    python, f"scikit-learn {version}", f"{wheel}[test]", f"scikit-learn=={version}.*",
                    arguments=SKLEARN_TESTS,
                )  # fmt: skip
            smoke = ("-m", "smoke and not slow and not long", *(f"--deselect={name}" for name in OF_THE_REPOSITORY))
            if old:
                report(python, "oldest libraries", f"{wheel}[test]", *oldest(), arguments=smoke)
            for what, package in () if versions or old else (("wheel", wheel), ("sdist", sdist)):
                report(python, what, f"{package}[test]", arguments=smoke)
    if out is not None:
        write_bytes(out, markdown("Installed elsewhere", rows).encode())


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.packages")
