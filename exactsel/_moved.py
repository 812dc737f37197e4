"""Module names of earlier versions: who imports one gets the module under its name of today, and a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType

TODAY = {
    "arrays": "data.arrays",
    "blas": "algebra.threads",
    "bounds.dependent": "walks.dependent",
    "bounds.subsearch": "walks.relaxation",
    "bounds.subtree": "walks.closed_form",
    "certifying": "studies.certify",
    "checkable": "proofs.instance",
    "checks": "problem.checks",
    "choosing": "solving.choose",
    "column_subset": "problem.column_subset",
    "comparing": "studies.compare",
    "criteria": "studies.criteria",
    "crossval": "studies.crossval",
    "curvature": "algebra.curvature",
    "escaping": "errors",
    "fit": "problem.fit",
    "frames": "problem.frames",
    "generate": "data.generate",
    "grouped": "problem.grouped",
    "heuristics": "studies.heuristics",
    "history": "observers.history",
    "identity": "problem.identity",
    "incumbents": "start.models",
    "instance": "data.instance",
    "model": "problem.model",
    "near": "studies.near",
    "path": "studies.path",
    "plotting": "observers.plots",
    "preparing": "problem.preparing",
    "projection": "algebra.projection",
    "proof": "bounds.witness",
    "proof_claim": "solving.claim",
    "proof_file": "proofs.writer",
    "proof_records": "proofs.pieces",
    "relations": "algebra.relations",
    "report.exchange": "studies.exchange",
    "report.facts": "studies.facts",
    "result": "solving.result",
    "search.graph": "observers.tree",
    "search.subtrees": "walks.effort",
    "settings": "solving.settings",
    "sizes": "data.sizes",
    "spectrum": "algebra.spectrum",
    "statement": "proofs.statement",
    "subset": "problem.interface",
    "tracing": "observers.trace",
    "verifying": "proofs.verify",
}
"""Names within the package, then and now; those a face still answers to (``problem``, ``solving``) are not here."""

PUBLIC = ("heuristics",)
"""What the package itself offers under this name; importing it so is no mistake."""


class _Known(Loader):
    """Hands on a module that is there under another name."""

    def __init__(self, today: str) -> None:
        self._today = today

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._today)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module has been run; only its own specification, which importing has replaced, is given back to it."""
        module.__spec__ = self._spec


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != "exactsel" or name not in TODAY:
            return None
        today = f"exactsel.{TODAY[name]}"
        if name not in PUBLIC:
            warnings.warn(f"{fullname} is called {today} today; import that.", DeprecationWarning, stacklevel=2)
        return spec_from_loader(fullname, _Known(today))


def answer_to_earlier_names() -> None:
    """Let earlier names be imported; today's are found before anybody looks here."""
    sys.meta_path.append(_Finder())
