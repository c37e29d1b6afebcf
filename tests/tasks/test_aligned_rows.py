from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.tasks import Vocabulary
from regard.tasks.aligned_rows import Row, find_files, make_batch, read_rows

GOOD = "a b .\tx y\t0 1\n"


def faults(folder: Path, content: bytes, ends: bool = False) -> tuple[str, ...]:
    (folder / "rows.tsv").write_bytes(content)
    with pytest.raises(RegardError) as caught:
        read_rows(folder, ["rows"], optional=[], ends=ends)
    return caught.value.faults


@pytest.mark.parametrize("packed", [False, True])
def test_rows_come_without_the_stop(tmp_path: Path, packed: bool) -> None:
    content = (GOOD + "c .\tz\t1\r\n").encode()
    if packed:
        (tmp_path / "rows.tsv.gz").write_bytes(gzip.compress(content))
    else:
        (tmp_path / "rows.tsv").write_bytes(content)
    rows = read_rows(tmp_path, ["rows"], optional=["more"], ends=False)
    assert rows == {"rows": [Row(("a", "b"), ("x", "y"), (0, 1)), Row(("c",), ("z",), (1,))]}


def test_an_end_has_an_attention_target(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text("a b .\tx y\t0 1 2\n", encoding="utf-8")
    rows = read_rows(tmp_path, ["rows"], optional=[], ends=True)["rows"]
    batch = make_batch(rows, Vocabulary.of("ab"), Vocabulary.of("xy"), ends=True)
    assert batch.source.tolist() == batch.target.tolist() == [[3, 4, 2]]
    assert batch.alignment is not None
    assert batch.alignment.tolist() == [[0, 1, 2]]


def test_alignments_are_filled_up_with_nowhere() -> None:
    rows = [Row(("a", "b"), ("x", "y"), (0, 1)), Row(("a",), ("x",), (0,))]
    batch = make_batch(rows, Vocabulary.of("ab"), Vocabulary.of("xy"), ends=False)
    assert batch.alignment is not None
    assert batch.alignment.tolist() == [[0, 1], [0, -1]]
    assert batch.target.tolist() == [[3, 4], [3, 0]]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("a .\tx", "2 columns instead of 3"),
        ("a .\tx\t0\tmore", "4 columns instead of 3"),
        ("a b\tx\t0", "the source is not words and then '.'"),
        (".\tx\t0", "the source is not words and then '.'"),
        ("a .\t \t0", "the target is empty"),
        ("a .\tx\tone", "the attention target 'one' is not a whole number from 0 on"),
        ("a .\tx\t-1", "the attention target '-1' is not a whole number from 0 on"),
        ("a .\tx\t1.0", "the attention target '1.0' is not a whole number from 0 on"),
        ("a .\tx\t2", "the attention target 2 is outside the source, whose positions are 0 to 1"),
        ("a .\tx y\t0", "1 attention targets for 2 words of the target"),
        ("a .\tx y\t0 1 1 1", "4 attention targets for 2 words of the target"),
        ("a .\tx\t", "0 attention targets for 1 words of the target"),
        ("", "the line is empty"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, says: str) -> None:
    first, mend = faults(tmp_path, f"{GOOD}{line}\n{GOOD}".encode())
    assert first.startswith(f"{tmp_path / 'rows.tsv'}, line 2: {says}")
    assert mend == "Mend the lines, or fetch the files again."


def test_the_end_needs_an_attention_target(tmp_path: Path) -> None:
    first, _ = faults(tmp_path, GOOD.encode(), ends=True)
    assert first.endswith("line 1: 2 attention targets for 2 words of the target and its end.")


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    first, _ = faults(tmp_path, GOOD.encode() + b"a \xff .\tx\t0\n")
    assert first.endswith("rows.tsv, line 2: byte 3 is not UTF-8 text.")


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    first, _ = faults(tmp_path, b"")
    assert first.endswith("rows.tsv, line 1: the file is empty.")


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    found = faults(tmp_path, b"bad\n" * 12)
    assert len(found) == 11
    assert found[-1].startswith("2 more lines are bad.")


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv.gz").write_bytes(gzip.compress(GOOD.encode() * 100)[:-12])
    with pytest.raises(RegardError, match=r"rows\.tsv\.gz is gzipped but damaged"):
        read_rows(tmp_path, ["rows"], optional=[], ends=False)


def test_missing_files_are_named_with_what_should_be_there(tmp_path: Path) -> None:
    (tmp_path / "b.tsv").write_text(GOOD, encoding="utf-8")
    with pytest.raises(RegardError) as caught:
        read_rows(tmp_path, ["a", "b", "c"], optional=["d"], ends=False)
    assert caught.value.faults == (
        f"{tmp_path} has no a.tsv, c.tsv. The folder should hold a.tsv, b.tsv, c.tsv, each plain"
        " or as .tsv.gz.",
    )
    with pytest.raises(RegardError, match=r"There is no folder .*nowhere\. Check task\.data"):
        read_rows(tmp_path / "nowhere", ["a"], optional=[], ends=False)


def test_a_plain_file_comes_before_a_packed_one(tmp_path: Path) -> None:
    assert find_files(tmp_path, ["a"]) == {"a": tmp_path / "a.tsv"}
    (tmp_path / "a.tsv.gz").touch()
    assert find_files(tmp_path, ["a"]) == {"a": tmp_path / "a.tsv.gz"}
    (tmp_path / "a.tsv").touch()
    assert find_files(tmp_path, ["a"]) == {"a": tmp_path / "a.tsv"}
