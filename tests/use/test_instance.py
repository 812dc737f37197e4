"""Instance files: what is written comes back, and whatever cannot be used is refused in one clear sentence."""

from __future__ import annotations

import io
import itertools
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from exactsel.data import load
from exactsel.data.instance import Instance, read_instance, write_instance
from exactsel.data.sizes import VARIABLE
from exactsel.errors import InputError
from exactsel.losses import Huber

A = np.arange(12.0).reshape(4, 3) ** 2
Y = np.array([1.0, -2.0, 0.5, 4.0])
FULL = {"k": 2, "lam": 0.5, "loss": "huber", "delta": 1.5, "feature_names": ("one", "two", "three")}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.npz"


def stored(path: Path, **arrays) -> Path:
    """An archive as a user's ``numpy.savez`` makes it."""
    np.savez(path, **{"A": A, "y": Y, **arrays})
    return path


def with_member(path: Path, name: str, content: bytes) -> Path:
    """A valid instance but for one member, given as raw bytes."""
    write_instance(path, Instance(A, Y))
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()} | {name: content}
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return path


def npy(shape: tuple[int, ...], descr: str = "<f8", content: bytes = b"\0" * 16) -> bytes:
    """An ``.npy`` file that declares ``shape``, whatever follows."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue() + content


@pytest.mark.smoke
class TestRoundTrip:
    def test_every_field_comes_back(self, path):
        write_instance(path, Instance(A, Y, **FULL))
        back = read_instance(path)
        np.testing.assert_array_equal(back.A, A)
        np.testing.assert_array_equal(back.y, Y)
        assert {name: getattr(back, name) for name in FULL} == FULL

    def test_what_is_not_known_stays_unknown(self, path):
        write_instance(path, Instance(A, Y))
        back = read_instance(path)
        assert [getattr(back, name) for name in FULL] == [None] * len(FULL)
        assert zipfile.ZipFile(path).namelist() == ["A.npy", "y.npy"]

    def test_a_plain_savez_file_is_read(self, path):
        stored(path, k=2, lam=0.5, loss="huber", delta=1.5, feature_names=["one", "two", "three"])
        back = read_instance(path)
        assert {name: getattr(back, name) for name in FULL} == FULL
        assert [type(getattr(back, name)) for name in FULL] == [int, float, str, float, tuple]

    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("dtype", ["<f8", ">f8", "f4", "i8", "u1", "?"])
    def test_numeric_layouts_are_read(self, path, save, order, dtype):
        matrix = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype, order=order)
        save(path, A=matrix, y=np.array([1, 0], dtype=dtype))
        np.testing.assert_array_equal(read_instance(path).A, matrix)

    def test_whole_numbers_may_be_floats_or_one_entry_arrays(self, path):
        back = read_instance(stored(path, k=np.array([3.0]), lam=np.array([[1]]), loss=np.array(["quadratic"])))
        assert (back.k, back.lam, back.loss) == (3, 1.0, "quadratic")

    def test_unknown_keys_are_ignored_even_pickled_ones(self, path):
        assert read_instance(stored(path, note="hello", junk=np.array([{}, None]))).k is None

    def test_names_may_use_any_alphabet(self, path):
        write_instance(path, Instance(A, Y, feature_names=("größe", "重さ", "🎯")))
        assert read_instance(path).feature_names == ("größe", "重さ", "🎯")
        stored(path, feature_names=np.array(["größe", "重さ", "🎯"], dtype=">U5"))
        assert read_instance(path).feature_names == ("größe", "重さ", "🎯")

    def test_numpy_reads_what_is_written(self, path):
        write_instance(path, Instance(A, Y, **FULL))
        with np.load(path, allow_pickle=False) as archive:
            assert list(archive) == ["A", "y", "k", "lam", "loss", "delta", "feature_names"]
            np.testing.assert_array_equal(archive["A"], A)
            assert archive["loss"][()] == "huber"

    def test_empty_arrays_reach_the_problem(self, path):
        np.savez(path, A=np.zeros((0, 3)), y=np.zeros(0), k=1, lam=1.0)
        with pytest.raises(InputError, match="A is empty"):
            load(path)


class TestWriting:
    def test_equal_instances_give_equal_bytes(self, tmp_path):
        layouts = [A, np.asfortranarray(A), A.astype(">f8"), A.astype(np.float32), A.astype(int), A.tolist()]
        written = set()
        for number, matrix in enumerate(layouts):
            file = tmp_path / f"{number}.npz"
            write_instance(file, Instance(matrix, Y, k=np.int32(2), feature_names=["one", "two", "three"]))
            os.utime(file, (number, number))
            written.add(file.read_bytes())
        assert len(written) == 1

    def test_an_existing_file_is_replaced_and_nothing_else_is_left(self, path):
        write_instance(path, Instance(A, Y, k=1))
        write_instance(path, Instance(A, Y, k=2))
        assert read_instance(path).k == 2
        assert list(path.parent.iterdir()) == [path]

    def test_an_interrupted_write_leaves_the_old_file(self, path, monkeypatch):
        write_instance(path, Instance(A, Y, k=1))

        def interrupt(*_args, **_options):
            raise KeyboardInterrupt

        monkeypatch.setattr(np.lib.format, "write_array", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_instance(path, Instance(A, Y, k=2))
        monkeypatch.undo()
        assert read_instance(path).k == 1
        assert list(path.parent.iterdir()) == [path]

    def test_the_name_must_end_in_npz(self, tmp_path):
        with pytest.raises(InputError, match=r"must have a name that ends in \.npz; write data\.csv\.npz"):
            write_instance(tmp_path / "data.csv", Instance(A, Y))

    def test_the_folder_must_exist(self, tmp_path):
        with pytest.raises(InputError, match=r"nowhere.data\.npz cannot be written \(No such file"):
            write_instance(tmp_path / "nowhere" / "data.npz", Instance(A, Y))

    @pytest.mark.parametrize("matrix", [A + 1j, A.astype(str), A.astype(object), A.astype("M8[s]")])
    def test_only_real_numbers_are_written(self, path, matrix):
        with pytest.raises(InputError, match="only real numbers can be stored"):
            write_instance(path, Instance(matrix, Y))
        assert not path.exists()


class TestProblem:
    def test_the_file_states_the_problem(self, path):
        write_instance(path, Instance(A, Y, **FULL))
        problem = load(path)
        assert (problem.k, problem.lam, problem.loss, problem.feature_names) == (
            2,
            0.5,
            Huber(1.5),
            FULL["feature_names"],
        )
        np.testing.assert_array_equal(problem.A, A)

    def test_arguments_beat_the_file(self, path):
        write_instance(path, Instance(A, Y, **FULL))
        problem = load(path, k=1, lam=0.25, delta=3.0)
        assert (problem.k, problem.lam, problem.loss) == (1, 0.25, Huber(3.0))

    def test_zero_is_an_argument(self):
        problem = Instance(A, Y, k=2, lam=0.5).problem(k=0, lam=0.0)
        assert (problem.k, problem.lam) == (0, 0.0)

    def test_quadratic_loss_by_default(self):
        assert Instance(A, Y, k=2, lam=0.5).problem().loss.name == "quadratic"

    @pytest.mark.parametrize("loss", ["quadratic", "logistic"])
    def test_the_delta_of_a_huber_file_does_not_disturb_another_loss(self, loss):
        assert Instance(A, np.sign(Y), **FULL).problem(loss=loss).loss.name == loss

    def test_a_stored_delta_serves_huber_loss_only(self):
        quadratic = Instance(A, Y, k=2, lam=0.5, loss="quadratic", delta=1.5)
        assert quadratic.problem().loss.name == "quadratic"
        assert quadratic.problem(loss="huber").loss == Huber(1.5)
        assert quadratic.problem(loss=Huber(7.0)).loss == Huber(7.0)

    def test_huber_without_delta_takes_the_default(self):
        expected = 1.345 * np.median(np.abs(Y - np.median(Y))) / 0.6745
        assert Instance(A, Y, k=2, lam=0.5).problem(loss="huber").loss == Huber(pytest.approx(expected))

    def test_an_explicit_delta_needs_a_loss_that_has_one(self):
        with pytest.raises(InputError, match="delta is given, but quadratic loss has no such parameter"):
            Instance(A, Y, **FULL).problem(loss="quadratic", delta=1.0)

    @pytest.mark.parametrize(("known", "missing"), [({"lam": 1.0}, "k, "), ({"k": 1, "loss": "huber"}, "lam, ")])
    def test_k_and_lam_must_come_from_somewhere(self, known, missing):
        with pytest.raises(InputError, match=f"^{missing}.*is missing"):
            Instance(A, Y, **known).problem()

    def test_the_problem_checks_the_data(self, path):
        with pytest.raises(InputError, match="the data have 3 rows but y has 4 entries"):
            load(stored(path, A=A[:3]), k=1, lam=1.0)
        with pytest.raises(InputError, match="NaN or infinite"):
            load(stored(path, A=A * np.nan), k=1, lam=1.0)

    def test_an_unknown_loss_is_named(self, path):
        with pytest.raises(InputError, match="no loss called 'absolute'"):
            load(stored(path, loss="absolute"), k=1, lam=1.0)


@pytest.mark.smoke
class TestRefused:
    def refuse(self, path, match):
        with pytest.raises(InputError, match=match) as caught:
            read_instance(path)
        text = str(caught.value)
        assert text.endswith(".")
        assert "\n" not in text
        return text

    def test_missing_file(self, path):
        self.refuse(path, "there is no file")

    def test_folder(self, tmp_path):
        self.refuse(tmp_path, "is a folder, but an instance is one .npz file")

    @pytest.mark.parametrize("name", ["data.csv", "data.npy", "data"])
    def test_another_kind_of_file(self, tmp_path, name):
        file = tmp_path / name
        file.write_text("1,2,3\n")
        self.refuse(file, r"is not an \.npz file.* numpy\.savez\('data\.npz', A=A, y=y\)")

    @pytest.mark.parametrize("content", [b"", b"hello, world", b"\x93NUMPY\1\0"])
    def test_not_an_archive(self, path, content):
        path.write_bytes(content)
        self.refuse(path, "is not an .npz archive, despite its name")

    def test_unreadable(self, path, monkeypatch):
        write_instance(path, Instance(A, Y))

        def refuse(*_args, **_options):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", refuse)
        self.refuse(path, r"cannot be read \(Permission denied\)")

    def test_truncated(self, path):
        write_instance(path, Instance(A, Y, **FULL))
        whole = path.read_bytes()
        for size in range(2, len(whole), 97):
            path.write_bytes(whole[:size])
            self.refuse(path, "truncated or damaged")

    def test_one_flipped_byte_never_escapes_as_another_error(self, path):
        rng = np.random.default_rng(0)
        np.savez_compressed(path, A=A, y=Y, **FULL)
        whole = path.read_bytes()
        refused = 0
        for position, flip in itertools.product(rng.choice(len(whole), 400, replace=False), (1, 0x80)):
            damaged = bytearray(whole)
            damaged[position] ^= flip
            path.write_bytes(damaged)
            try:
                read_instance(path)
            except InputError:
                refused += 1
        assert refused > 400

    def test_missing_keys(self, path):
        np.savez(path, X=A, target=Y)
        self.refuse(path, "holds X, target, but an instance needs the arrays A and y; write it with numpy.savez")
        np.savez(path, y=Y)
        self.refuse(path, "holds y, but")
        np.savez(path)
        self.refuse(path, "holds nothing, but")
        np.savez(path, **{f"x{i}": Y for i in range(15)})
        self.refuse(path, "x9|and 5 more")

    @pytest.mark.parametrize("key", ["A", "y", "feature_names"])
    def test_pickled_entries(self, path, key):
        stored(path, **{key: np.array([1.0, "two", None], dtype=object)})
        self.refuse(path, rf"{key}\.npy in .* is a pickled object array, which is never opened.*astype")

    def test_a_header_that_declares_more_than_there_is(self, path):
        with_member(path, "A.npy", npy((10**9, 10**9)))
        self.refuse(path, r"A\.npy in .* declares 8000000000000000000 bytes but holds 16")

    @pytest.mark.parametrize("shape", [(-2,), (-1, -2), (1,), (3,)])
    def test_a_header_that_does_not_fit(self, path, shape):
        with_member(path, "A.npy", npy(shape))
        self.refuse(path, "damaged")

    def test_entries_of_no_size(self, path):
        with_member(path, "A.npy", npy((10**18,), "<U0", b""))
        self.refuse(path, "truncated or damaged")

    @pytest.mark.parametrize("descr", ["<U4", ">U4"])
    def test_text_that_is_no_text(self, path, descr):
        with_member(path, "loss.npy", npy((), descr, b"\xff" * 16))
        self.refuse(path, "truncated or damaged")

    @pytest.mark.parametrize("descr", ["<M8[s]", "|V8", [("a", "<f4"), ("b", "<f4")]])
    def test_entries_that_are_neither_numbers_nor_texts(self, path, descr):
        with_member(path, "A.npy", npy((2,), descr))
        self.refuse(path, "store plain numbers or texts instead")

    @pytest.mark.parametrize("content", [b"", b"hello", npy((2,))[:30], b"\x93NUMPY\x09\x00" + npy((2,))[8:]])
    def test_a_member_that_is_no_array(self, path, content):
        with_member(path, "A.npy", content)
        self.refuse(path, "truncated or damaged")

    def test_a_directory_that_lies_about_sizes(self, path):
        with_member(path, "A.npy", npy((1000, 1000)))
        data = bytearray(path.read_bytes())
        entry = data.index(b"PK\x01\x02")
        length = len(npy((1000, 1000))) - 16 + 8_000_000
        data[entry + 24 : entry + 28] = length.to_bytes(4, "little")
        path.write_bytes(data)
        self.refuse(path, "truncated or damaged")

    def test_an_array_beyond_the_limit(self, path, monkeypatch):
        write_instance(path, Instance(A, Y))
        monkeypatch.setenv(VARIABLE, str(200 / 2**20))
        self.refuse(path, r"A\.npy in .* unpacks to \d+ bytes, more than the 200 that are read")

    @pytest.mark.parametrize(
        ("key", "value", "match"),
        [
            ("k", np.array([1, 2]), "k is an array of 2 entries of type int64, but one whole number was expected"),
            ("k", 2.5, "k is 2.5, but one whole number"),
            ("k", np.nan, "k is nan, but one whole number"),
            ("k", "two", "k is 'two', but one whole number"),
            ("k", True, "k is True, but one whole number"),
            ("lam", np.zeros((2, 3)), "lam is an array of 2 x 3 entries of type float64, but one number was expected"),
            ("lam", "small", "lam is 'small', but one number"),
            ("lam", np.array([]), "lam is an array of 0 entries"),
            ("delta", 1j, "delta is 1j, but one number"),
            ("delta", False, "delta is False, but one number"),
            ("loss", 3, "loss is 3, but one text was expected"),
            ("loss", np.array(["huber", "huber"]), "loss is an array of 2 entries of type <U5, but one text"),
            ("loss", b"huber", "loss is b'huber', but one text"),
            (
                "feature_names",
                np.arange(3),
                "feature_names is an array of 3 entries of type int64, but a list of texts",
            ),
            ("feature_names", "one", "feature_names is an array of one entries"),
            ("feature_names", np.full((1, 3), "x"), "feature_names is an array of 1 x 3 entries"),
        ],
    )
    def test_parameters_of_the_wrong_type(self, path, key, value, match):
        text = self.refuse(stored(path, **{key: value}), match)
        assert text.startswith(f"in {path}, ")


class TestByHand:
    def test_fields_are_checked(self):
        with pytest.raises(InputError, match="k is 'five', but one whole number"):
            Instance(A, Y, k="five")
        with pytest.raises(InputError, match="feature_names is 'abc', but a list of texts"):
            Instance(A, Y, feature_names="abc")
        with pytest.raises(InputError, match="feature_names is 3, but a list of texts"):
            Instance(A, Y, feature_names=3)
        with pytest.raises(InputError, match=r"loss is \['aaa.*…, but one text"):
            Instance(A, Y, loss=["a" * 100])

    def test_ragged_rows(self):
        with pytest.raises(InputError, match="A has rows of different lengths"):
            Instance([[1.0, 2.0], [3.0]], Y)

    def test_frozen(self):
        with pytest.raises(AttributeError):
            Instance(A, Y).k = 3

    def test_repr_is_short(self):
        assert repr(Instance(A, Y, k=2)) == "Instance(A: 4 x 3, k=2, lam=None, loss=None, delta=None)"
