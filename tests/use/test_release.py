"""What a release needs: versions that agree, the changelog's fragments, workflows, the issue form, the conda recipe."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import jinja2
import pytest
import yaml
from clocks import HANG

from exactsel import __version__

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

pytestmark = pytest.mark.skipif(not GITHUB.is_dir(), reason="not in a checkout")


def loaded(path: Path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps():
    for path in WORKFLOWS:
        for job in loaded(path)["jobs"].values():
            yield from job["steps"]


COMMANDS = sorted({step["run"] for step in steps() if "run" in step}) if WORKFLOWS else []


def test_versions_agree():
    assert PROJECT["project"]["version"] == __version__
    assert loaded(ROOT / "CITATION.cff")["version"] == __version__
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


# The changelog


def test_fragments_become_a_section_above_the_last_release(tmp_path):
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "changes").mkdir()
    for name in ("README.md", "template.md.jinja"):
        shutil.copy(ROOT / "changes" / name, tmp_path / "changes")
    before = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    (tmp_path / "changes" / "+faster.search.md").write_text("Twice as fast.\n")
    (tmp_path / "changes" / "12.problems.md").write_text("Another loss.\n")
    command = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", "9.9.9", "--date", "2030-01-01"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stderr
    after = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    head, old = before.split("<!-- releases -->\n")
    section = (
        "\n## [9.9.9] - 2030-01-01\n\n### Problems\n\n- Another loss.\n\n### Search and claims\n\n- Twice as fast.\n"
    )
    assert after.startswith(f"{head}<!-- releases -->\n{section}")
    assert after.endswith(old)


def test_kinds_of_fragments_are_named_in_the_readme_and_none_is_misnamed():
    kinds = {kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]}
    text = (ROOT / "changes" / "README.md").read_text(encoding="utf-8")
    assert all(f"`{kind}`" in text for kind in kinds)
    fragments = [path.name for path in (ROOT / "changes").iterdir()]
    fragments = [name for name in fragments if name not in ("README.md", "template.md.jinja")]
    assert all(re.fullmatch(rf"[^.]+\.({'|'.join(kinds)})\.md", name) for name in fragments), fragments


# GitHub


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_read_only_and_end(path):
    workflow = loaded(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 90
        assert "permissions" not in job
    assert "secrets." not in path.read_text(encoding="utf-8")
    assert "pull_request_target" not in path.read_text(encoding="utf-8")


def test_actions_are_pinned_by_commit():
    used = {step["uses"] for step in steps() if "uses" in step}
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name) for name in used), used
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    assert len(re.findall(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+\n", text)) == text.count("uses:")


def test_every_supported_python_is_tested_and_packaged():
    versions = {line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", line)}
    tested = {
        each["python"]
        for each in loaded(GITHUB / "workflows/test.yml")["jobs"]["test"]["strategy"]["matrix"]["include"]
    }
    packaged = loaded(GITHUB / "workflows/package.yml")["jobs"]["package"]["strategy"]["matrix"]["python"]
    assert tested == set(packaged) == versions


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("make ")])
def test_targets_of_workflows_exist(command):
    done = subprocess.run(
        ["make", "--dry-run", *command.split()[1:]], cwd=ROOT, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_other_commands_of_workflows_do_what_they_say(tmp_path, monkeypatch, run):
    """Installation apart: the tests run on what is installed."""
    (tmp_path / "instances").symlink_to(ROOT / "instances")
    monkeypatch.chdir(tmp_path)
    others = [step["run"] for step in steps() if not step.get("run", "make ").startswith(("make ", "python -m pip "))]
    assert len(others) == 4
    for command in others:
        if command.startswith("exactsel "):
            assert run(*command.split()[1:]).code == 0
        else:
            words = [sys.executable, *command.split()[1:]]
            assert subprocess.run(words, capture_output=True, timeout=HANG, check=False).returncode == 0


def test_the_form_for_failures_asks_for_what_reduce_writes():
    form = loaded(GITHUB / "ISSUE_TEMPLATE" / "failure.yml")
    asked = {field["id"]: field for field in form["body"] if "id" in field}
    assert {"version", "command", "output", "reproducer"} <= {*asked}
    assert "exactsel dev reduce exactsel-failure-" in asked["reproducer"]["attributes"]["description"]
    assert all(asked[name]["validations"]["required"] for name in ("version", "command"))


# The conda recipe


def test_the_conda_recipe_asks_for_what_the_project_asks_for():
    """Names differ on conda-forge for two of them; ``tomli`` is there for every Python."""

    def load_file_regex(load_file, regex_pattern, from_recipe_dir):
        assert not from_recipe_dir
        return re.search(regex_pattern, (ROOT / load_file).read_text(encoding="utf-8"))

    text = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(jinja2.Template(text).render(load_file_regex=load_file_regex, PYTHON="python"))
    assert recipe["package"] == {"name": "exactsel", "version": __version__}
    asked = {each.partition(";")[0].strip() for each in PROJECT["project"]["dependencies"]}
    given = {each.replace(" ", "", 1) for each in recipe["requirements"]["run"]}
    assert given == asked | {f"python{PROJECT['project']['requires-python']}"}
    assert {"python", "pip", "hatchling"} <= {each.split()[0] for each in recipe["requirements"]["host"]}
    scripts = [f"{name} = {where}" for name, where in PROJECT["project"]["scripts"].items()]
    assert recipe["build"]["entry_points"] == scripts
    for words in recipe["test"]["commands"]:
        assert words.startswith("exactsel ")
