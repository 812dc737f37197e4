"""``python -m exactsel_dev.release``: build wheel and sdist, install them elsewhere, and test what was installed.

Tests are those of the sdist, from whose folder the packages have been removed: what they import is what was installed.
Each Python gets one new environment. It holds the wheel alone at first, for the commands of the README; then what the
tests need; and last the sdist in the place of the wheel. A failure ends neither the other parts nor the other versions.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
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

IN_THE_WHEEL = {"exactsel", "exactsel_heuristics", "exactsel_certificates", "exactsel_mapped"}

BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def must(*command: str | Path, cwd: Path | None = None, codes: Sequence[int] = (0,)) -> str:
    """The output, stdout and stderr in one, of a command that has to end with one of these exit codes."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=cwd, env=environment, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except FileNotFoundError:
        raise click.ClickException(f"{words[0]} is no program here; name an interpreter that is.") from None
    if done.returncode not in codes:
        raise click.ClickException(f"{' '.join(words)[:400]} ended with {done.returncode}\n{done.stdout[-6000:]}")
    return done.stdout


def built(folder: Path) -> dict[str, Path]:
    """Wheel and sdist, made in the folder and checked; the wheel from the sdist, as installers do."""
    must(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    must(sys.executable, "-m", "twine", "check", "--strict", *folder.iterdir())
    packages = {WHEEL: next(folder.glob("*.whl")), SDIST: next(folder.glob("*.tar.gz"))}
    with zipfile.ZipFile(packages[WHEEL]) as archive:
        rooms = {name.partition("/")[0] for name in archive.namelist()}
    if {room for room in rooms if not room.endswith(".dist-info")} != IN_THE_WHEEL:
        raise click.ClickException(f"the wheel holds {sorted(rooms)}, but {sorted(IN_THE_WHEEL)} were expected.")
    return packages


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


def install(inside: Path, *words: str | Path) -> None:
    """Hand the words to pip in an environment."""
    must(inside, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *words)


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
        raise click.ClickException(f"the tests would run on {where}, not on the installed package.")
    told = must(inside, "-m", "pytest", "-q", "-n", str(jobs), "--dist", "worksteal", *arguments, cwd=place)
    return told.strip().splitlines()[-1].strip("= ")


def readme_followed(inside: Path, place: Path, folder: Path, wheel: Path) -> str:
    """How many blocks of the README ran: commands with the wheel alone, Python with what it says to install."""
    text = (place / "README.md").read_text(encoding="utf-8")
    commands = [body for kind, body in BLOCK.findall(text) if kind == "bash"]
    lines = [body for kind, body in BLOCK.findall(text) if kind == "python"]
    folder.mkdir()
    install(inside, wheel)
    must(inside.with_name("exactsel"), "data", "instances", "--copy", "instances", cwd=folder)
    for line in "".join(commands).splitlines():
        # A gap that is left ends a command with 1.
        must(inside.with_name("exactsel"), *shlex.split(line, comments=True)[1:], cwd=folder, codes=(0, 1))
    asked = shlex.split(text.partition("    pip install ")[2].partition("\n")[0])
    install(inside, *(word.replace("exactsel", str(wheel)) for word in asked))
    for body in lines:
        must(inside, "-c", body, cwd=folder)
    return f"{len(commands)} blocks of commands and {len(lines)} of Python ran"


def smoke_tests(place: Path) -> list[str]:
    """Arguments for pytest that run the smoke tier; only files with a test of that tier are collected."""
    files = sorted(path for path in (place / "tests").rglob("test_*.py") if "smoke" in path.read_text(encoding="utf-8"))
    named = [path.relative_to(place).as_posix() for path in files]
    left_out = [f"--deselect={name}" for name in OF_THE_REPOSITORY]
    return ["-m", "smoke and not slow and not long", *left_out, *named]


class Trial:
    """One Python in a new environment: what is said of each part, and whether all went well."""

    def __init__(self, python: str, folder: Path, place: Path, tools: Path, jobs: int) -> None:
        self.python, self.folder, self.place, self.tools, self.jobs = python, folder, place, tools, jobs
        self.inside = folder / "venv" / "bin" / "python"
        self.lines: list[str] = []
        self.failed = False

    def note(self, part: str, step: Callable[..., str], *arguments: object) -> None:
        """Print the result or the failure of a step; the next steps run in either case."""
        try:
            said = step(*arguments)
            line = f"{self.python}, {part}: {said}"
        except click.ClickException as error:
            self.failed = True
            line = f"{self.python}, {part}: FAILED"
            click.echo(error.message, err=True)
        click.echo(line)
        self.lines.append(line)

    def begin(self) -> str:
        """Make the environment; the version of its Python."""
        must(self.python, "-m", "venv", "--clear", self.folder / "venv")
        self.python = must(self.inside, "-c", "import platform; print('Python', platform.python_version())").strip()
        return "made"

    def smoke(self, package: Path, *requirements: str | Path) -> str:
        """Install a package, with what the tests need, and run the smoke tier."""
        install(self.inside, f"{package}[test]", *requirements)
        install(self.inside, "--force-reinstall", "--no-deps", package)
        install(self.inside, "--no-deps", self.tools)
        return tested(self.inside, self.place, smoke_tests(self.place), self.jobs)

    def readme(self, wheel: Path) -> str:
        """Follow the README with the wheel."""
        return readme_followed(self.inside, self.place, self.folder / "readme", wheel)

    def estimators(self, wheel: Path, version: str) -> str:
        """Install the wheel beside a version of scikit-learn, and run the tests of the estimators."""
        install(self.inside, f"{wheel}[test]", f"scikit-learn=={version}.*", self.tools)
        return tested(self.inside, self.place, SKLEARN_TESTS, self.jobs)


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

    The wheel without extras runs the commands of the README before that. With --oldest the wheel is installed with the
    oldest libraries it accepts, with --sklearn with each of those versions, for the tests of the estimators.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        packages = built(folder / "dist")
        click.echo(f"{', '.join(path.name for path in packages.values())}: built, twine finds no fault")
        if out is not None:
            shutil.copytree(folder / "dist", out, dirs_exist_ok=True)
        place, tools = tests_of(packages[SDIST], folder / "tests")
        trials = []
        for number, python in enumerate(pythons):
            trial = Trial(python, folder / str(number), place, tools, jobs)
            trials.append(trial)
            trial.note("venv", trial.begin)
            if trial.failed:
                continue
            for version in versions:
                trial.note(f"scikit-learn {version}", trial.estimators, packages[WHEEL], version)
            if old:
                trial.note("oldest libraries", trial.smoke, packages[WHEEL], *oldest())
            if not versions and not old:
                trial.note("README with the wheel", trial.readme, packages[WHEEL])
                for part in parts:
                    trial.note(f"smoke tier of the {part}", trial.smoke, packages[part])
            shutil.rmtree(trial.folder)
        failed = [trial.python for trial in trials if trial.failed]
        click.echo("\n".join(("", *(line for trial in trials for line in trial.lines))))
        if failed:
            raise click.ClickException(f"something failed on {', '.join(failed)}; the reasons stand above.")


if __name__ == "__main__":
    main(prog_name="python -m exactsel_dev.release")
