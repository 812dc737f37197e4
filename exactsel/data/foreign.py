"""Tables other programs write, read with pandas: sheets, Stata, SPSS, one JSON object a line."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from exactsel.data.sizes import Budget
from exactsel.errors import InputError, UnsupportedError
from exactsel.problem.frames import Column, frame_columns

NEEDED = {
    ".xlsx": ("read_excel", "openpyxl"), ".dta": ("read_stata", ""),
    ".sav": ("read_spss", "pyreadstat"), ".jsonl": ("", ""), ".ndjson": ("", ""),
}  # fmt: skip
"""What pandas reads a kind of file with, and what it needs for that; of lines of JSON it makes the table alone."""

FOREIGN = tuple(NEEDED)

TEXT_TIMES = 20
"""A table takes so many times the bytes of the text it is written in."""


def read_foreign(file: Path) -> list[Column]:
    """The columns of a sheet, a Stata or SPSS file, or of lines of JSON.

    Raises
    ------
    InputError
        When it unpacks to more than may be read, or pandas, or what that needs, is missing.
    Exception
        Every exception of the reader for a damaged file.
    """
    reader, needs = NEEDED[file.suffix.lower()]
    words = " and ".join(filter(None, ("pandas", needs)))
    lacking = UnsupportedError(f"reading {file.name} needs {words}; run: pip install 'exactsel[sheets]'.")
    try:
        import pandas
    except ImportError:
        raise lacking from None
    budget = Budget(file)
    if needs == "openpyxl":
        with zipfile.ZipFile(file) as archive:  # sheets are compressed
            budget.take(sum(member.file_size for member in archive.infolist()))
    else:
        budget.take(TEXT_TIMES * file.stat().st_size)
    try:
        if reader:
            frame = getattr(pandas, reader)(file)
        else:
            with open(file, encoding="utf-8-sig") as lines:
                frame = pandas.DataFrame([json.loads(line) for line in lines if line.strip()], dtype=object)
    except ImportError:
        raise lacking from None
    if not len(frame):
        raise InputError(f"{file} holds no observations; add a row for each.")
    frame.columns = [str(name).strip() for name in frame.columns]
    return frame_columns(frame)
