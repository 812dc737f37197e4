"""Run the notebooks of this folder and store their outputs: ``python docs/notebooks/run.py``."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient


def run(path: Path) -> None:
    """Execute one notebook and write it back; an error in a cell is an error here."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False).execute()
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"}}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for notebook in sorted(Path(__file__).parent.glob("*.ipynb")):
        run(notebook)
