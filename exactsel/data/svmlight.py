"""Text files in the svmlight format, read by scikit-learn, some lines at a time."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from exactsel.data.arrays import TEXT_BYTES, read_bytes
from exactsel.data.instance import Instance
from exactsel.data.sizes import Budget
from exactsel.data.sparse import tell_of_entries
from exactsel.deadlines import ask
from exactsel.errors import UnsupportedError
from exactsel.problem.design import stays_sparse
from exactsel.problem.doubles import EXACT, rounding_of_texts, say
from exactsel.problem.preparing import AUTO
from exactsel.types import FloatArray

BYTES_AT_ONCE = 2**22
"""Characters of a text that are read between two questions whether time is over."""


def read_svmlight(file: Path) -> Instance:
    """The matrix, which stays sparse where it is large, and the target.

    Raises
    ------
    UnsupportedError
        Without scikit-learn.
    InputError, ValueError
        When it unpacks to more than may be read, or is no such text.
    """
    try:
        import sklearn.datasets  # noqa: F401 (said before anything is read)
    except ImportError:
        raise UnsupportedError(f"reading {file.name} needs scikit-learn; run: pip install 'exactsel[data]'.") from None
    budget = Budget(file)
    text = read_bytes(file, budget).removeprefix(codecs.BOM_UTF8)
    budget.take(TEXT_BYTES * text.count(b":"))
    matrix, y = _loaded(text)
    sparse = stays_sparse(matrix.shape[0], matrix.shape[1], matrix.nnz)
    if sparse:
        budget.take_lines(*matrix.shape)
    else:
        budget.take_table(*matrix.shape)
    if max(np.abs(matrix.data).max(initial=0.0), np.abs(y).max(initial=0.0)) >= EXACT:
        _tell_of_numbers(text, file)
    return Instance(matrix if sparse else matrix.toarray(), y, intercept=AUTO)


def _loaded(text: bytes) -> tuple[Any, FloatArray]:
    """The matrix and the target; columns count from 1 where none is called 0, as scikit-learn has it for a whole."""
    import scipy.sparse
    from sklearn.datasets import load_svmlight_file

    parts = []
    for lines in _pieces(text):
        ask()
        parts.append(load_svmlight_file(io.BytesIO(lines), zero_based=True))
    ask()
    places = np.concatenate([part.indices for part, _ in parts])
    entries = [np.diff(part.indptr).astype(np.int64) for part, _ in parts]
    starts = np.append(0, np.cumsum(np.concatenate(entries)))
    if places.size and places.min() > 0:
        places -= 1
    shape = (starts.size - 1, int(places.max(initial=0)) + 1)
    data, y = np.concatenate([part.data for part, _ in parts]), np.concatenate([y for _, y in parts])
    return scipy.sparse.csr_matrix((data, places, starts), shape), y


def _pieces(text: bytes) -> Iterator[bytes]:
    """The text in pieces of whole lines; one where it is empty."""
    first = 0
    while True:
        end = text.find(b"\n", first + BYTES_AT_ONCE) + 1
        yield text[first : end or None]
        if not 0 < end < len(text):
            return
        first = end


def _tell_of_numbers(text: bytes, file: Path) -> None:
    """A word about what the numbers in such a text lose as doubles; the target counts as a column of its own."""
    rows = [words for line in text.splitlines() if (words := line.partition(b"#")[0].split())]
    targets = [row[0] for row in rows]
    say(rounding_of_texts([word.decode() for word in targets], np.array(targets, dtype=np.float64)),
        f"in {file}, the target")  # fmt: skip
    pairs = [pair.split(b":") for row in rows for pair in row[1:] if not pair.startswith(b"qid")]
    words = [pair[1] for pair in pairs]
    tell_of_entries(words, np.array([int(pair[0]) for pair in pairs]), np.array(words, dtype=np.float64), file)
