"""Sections of a page on the problem, the settings, and the commands to repeat the solve."""

from __future__ import annotations

from exactsel.problem.model import demands_text
from exactsel.report.page import Cell, Raw, code, paragraph, section, table
from exactsel.solving.result import Result


def settings_section(result: Result) -> str:
    """The problem, the settings and the times."""
    facts, noun = result.problem, result._noun
    parameters = ", ".join(f"{name} = {value:.6g}" for name, value in facts.get("loss_parameters", {}).items())
    if facts["problem"] == "css":
        objective = "||A − S S⁺A||², the squared Frobenius norm, over at most k columns S of A"
    else:
        limit = f"at most k {result._noun}s" if facts.get("groups") else "at most k non-zero coefficients"
        objective = f"P(x) = L(Ax) + (lam/2) ||x||², with L a sum over rows, over {limit}"
    rows: list[list[Cell] | None] = [
        ["objective, minimised", objective],
        ["loss", facts["loss"] + (f" ({parameters})" if parameters else "")] if "loss" in facts else None,
        ["lam", f"{facts['lam']:g}"] if "lam" in facts else None,
        [f"rows n, {noun}s d, limit k", f"{facts['n']:,}, {facts['d']:,}, {facts['k']:,}"],
        [f"features in all {noun}s", f"{facts['columns']:,}"] if facts.get("groups") else None,
        ["constraints", demands_text(facts)] if demands_text(facts) else None,
        ["scope of the lower bound", result.valid_for or "all models"],
        ["gap", "(upper − lower) / |upper|"],
        ["problem hash (sha256)", Raw(f"<code>{facts['problem_hash']}</code>")],
        ["tree hash (sha256)", Raw(f"<code>{result.tree_hash}</code>")],
    ]
    settings: list[list[Cell]] = [[name, _setting(value)] for name, value in result.settings.items()]
    times: list[list[Cell]] = [[name, f"{seconds:.3f}"] for name, seconds in result.times.items()]
    return section(
        "Problem and settings",
        table("The problem", ["what", "value"], [row for row in rows if row], words=2),
        "<details><summary>Settings and times</summary>",
        table("Settings", ["setting", "value"], settings, words=2),
        table("Seconds by part", ["part", "seconds"], times, words=2),
        "</details>",
    )


def commands_section(command: str | None, verify: str | None) -> str:
    """The commands that repeat the run and check its proof, as far as there are any."""
    parts: list[str] = []
    if command is not None:
        parts += [
            paragraph("The same command finds the same tree again (compare the tree hash)."),
            code(command, "The command that repeats the run"),
        ]
    if verify is not None:
        parts += [
            paragraph("A proof was written. This checks it without trusting the solver."),
            code(verify, "The command that checks the proof"),
        ]
    return section("Do it again", *parts) if parts else ""


def _setting(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
