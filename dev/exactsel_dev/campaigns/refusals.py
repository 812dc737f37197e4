"""Hold what is refused for want of a ridge against the truth, and what is not refused: is there a best model or not?"""

from __future__ import annotations

import re

from exactsel.testing.solving import Finding
from exactsel_dev.campaigns.brute_force import Truth
from exactsel_dev.campaigns.existence import dependent, separated, separated_completely

SEPARATED, HARDLY = "the two classes", "hardly limit"

NOTED = "noted: no ridge, refused"


def refusal(said: str, truth: Truth, noted: list[str]) -> list[Finding] | None:
    """What is wrong with a refusal, None where nothing is; ``noted`` gets its kind, if it is about a ridge of zero.

    That nothing limits the coefficients, nearly, is a judgement of doubles: where there is a best model all the same,
    that is counted, but no fault. That columns separate the classes is a statement about the data, and must be true.
    """
    if not (truth.ridgeless and said.startswith("lam is 0")):
        return None
    if SEPARATED in said:
        noted.append(f"{NOTED}: the classes are separated")
        return _separation(said, truth)
    if HARDLY in said:
        known = "columns are dependent" if truth.dependent else "the classes are separated, which it does not see"
        noted.append(f"{NOTED}: {known if truth.dependent or truth.separated else 'nearly dependent'}")
        return None
    return [Finding("refuses lam = 0 for a reason that is none", said)]


def _separation(said: str, truth: Truth) -> list[Finding] | None:
    """The columns that are named separate the classes, as it is said that they do."""
    named = re.search(r"features? ([\d, ]+)( and \d+ more)? separate", said)
    columns = [int(j) for j in named[1].split(",")] if named else []
    if named and named[2]:
        columns = truth.allowed
    units = [{*unit} for unit in truth.instance.units]
    included = [g for g, unit in enumerate(units) if unit & {*columns}]
    if not (named and named[2]) and (len(included) > truth.instance.k or {*included} & {*truth.instance.force_out}):
        return [Finding("features that are said to separate the classes are in no model together", said)]
    if not separated(truth.data, columns):
        return [Finding("features that are said to separate the classes do not", said)]
    if "classes completely" in said and not separated_completely(truth.data, columns):
        return [Finding("features that are said to separate the classes completely do not", said)]
    return None


def unlimited(truth: Truth, valid_for: str) -> list[Finding]:
    """What should have been refused, or said of some models only, since nothing limits the coefficients.

    Not where some model is no better than none, or where no column may be chosen.
    """
    if not truth.ridgeless or not truth.empty or valid_for or not truth.instance.k:
        return []
    instance = truth.instance
    allowed = instance.columns_of(frozenset(range(len(instance.units))) - {*instance.force_out})
    if instance.loss == "logistic" and separated(truth.data, allowed):
        return [Finding("solved without a ridge, but the classes are separated", "")]
    return [Finding("solved without a ridge, but columns are dependent", "")] if dependent(truth.data, allowed) else []
