from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from regard.errors import RegardError
from regard.tasks.text.classification import Classification, tokenise

ROWS = [(("bad", "good")[n % 2], f"Film number {n} was_it {n % 2}, yes.") for n in range(30)]


def classification(**settings: object) -> Classification:
    if "test" not in settings:
        settings = {"held_out": 2, **settings}
    return Classification(Classification.Config.model_validate(settings))


def faults(**settings: object) -> tuple[str, ...]:
    with pytest.raises(RegardError) as caught:
        classification(**settings)
    return caught.value.faults


def written(path: Path, text: str) -> str:
    path.write_bytes(text.encode())
    return str(path)


def texts(task: Classification, part: str = "train") -> list[tuple[str, str]]:
    batch = task.rows[part]
    said = map(task.target_vocabulary.decode, batch.target.tolist())
    read = map(task.source_vocabulary.decode, batch.source.tolist())
    return [(label[0], " ".join(words)) for label, words in zip(said, read, strict=True)]


def tsv(rows: list[tuple[str, str]]) -> str:
    return "".join(f"{label}\t{text}\n" for label, text in rows)


LAYOUTS: dict[str, tuple[str, str, dict[str, str]]] = {
    "label first": ("a.tsv", tsv(ROWS), {}),
    "text first": (
        "a.tsv", tsv([(text, label) for label, text in ROWS]),
        {"label_column": "2", "text_column": "1"},
    ),
    "a column between": (
        "a", "".join(f"{label}\t7\t{text}\n" for label, text in ROWS), {"text_column": "3"},
    ),
    "names in the first line": (
        "a.tsv", "class\twhat\n" + tsv(ROWS), {"label_column": "class", "text_column": "what"},
    ),
    "quoted, tabs": (
        "a.tsv", "".join(f'{label}\t"{text}"\n' for label, text in ROWS), {"quoted": "true"},
    ),
    "csv": ("a.csv", "".join(f'"{label}","{text}"\n' for label, text in ROWS), {}),
    "csv, two columns joined": (
        "a", "".join(f'"{l}","{t[:4]}","{t[5:]}"\n' for l, t in ROWS),  # noqa: E741
        {"text_column": "2-"},
    ),
    "csv over two lines": (
        "a.csv", "".join(f'{l},"{t[:4]}\n{t[5:]}"\n' for l, t in ROWS), {},  # noqa: E741
    ),
    "jsonl": (
        "a.jsonl", "".join(json.dumps({"label": l, "text": t}) + "\n" for l, t in ROWS),  # noqa: E741
        {},
    ),
    "jsonl, other keys": (
        "a", "".join(json.dumps({"y": l, "x": t}) + "\n" for l, t in ROWS),  # noqa: E741
        {"label_column": "y", "text_column": "x"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same(tmp_path: Path, layout: str, packed: bool) -> None:
    name, content, settings = LAYOUTS[layout]
    path = tmp_path / (name + ".gz" if packed else name)
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    plain = classification(data=written(tmp_path / "plain.tsv", tsv(ROWS)))
    task = classification(data=str(path), **settings)
    assert texts(task) == texts(plain)
    assert task.source_vocabulary == plain.source_vocabulary
    assert len(texts(task)) == 26 and task.skipped == {}


def test_a_file_for_each_label(tmp_path: Path) -> None:
    paths = [
        written(tmp_path / f"{label}.txt", "".join(f"{t}\n" for l, t in ROWS if l == label))  # noqa: E741
        for label in ("bad", "good")
    ]
    task = classification(data=",".join(paths), labels="bad,good")
    whole = classification(data=written(tmp_path / "plain.tsv", tsv(ROWS)))
    assert task.config.files() == tuple(map(Path, paths))
    every = [{row for part in t.rows for row in texts(t, part)} for t in (task, whole)]
    assert len(every[0]) > 1
    assert {label for label, _ in every[0]} == {"bad", "good"} == {label for label, _ in every[1]}
    with pytest.raises(ValidationError, match="labels names 3 labels"):
        classification(data=",".join(paths), labels="bad,good,ugly")


def test_labels_are_kept_renamed_and_in_order(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", tsv([(str(n % 5), f"text {n}") for n in range(50)]))
    task = classification(data=path)
    assert task.target_vocabulary.words == ("<PAD>", "<SOS>", *"01234")
    task = classification(data=path, keep="1,2,4", labels="1:bad,2:bad,4:good")
    assert task.target_vocabulary.words == ("<PAD>", "<SOS>", "bad", "good")
    assert sum(map(len, task.rows.values())) == 30
    assert task.skipped == {"texts of other labels": 20}
    assert faults(data=path, keep="1,7") == ("There is no label '7'. Known: 0, 1, 2, 3, 4.",)
    assert "nothing to tell apart" in faults(data=path, keep="1")[0]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "It's 1993 , a_b 7 !"),
        ({"lowercase": True}, "it's 1993 , a_b 7 !"),
        ({"integers": "unknown"}, "It's <UNK> , a_b 7 !"),
        ({"underscores": "split"}, "It's 1993 , a b 7 !"),
        ({"tokens": "spaces"}, "It's 1993, a_b 7!"),
    ],
)
def test_words_by_the_rules(settings: dict[str, object], expected: str) -> None:
    config = Classification.Config.model_validate({"data": "x", "lowercase": False, **settings})
    assert " ".join(tokenise("It's 1993, a_b 7!", config)) == expected


def test_no_text_can_say_padding() -> None:
    config = Classification.Config(data="x", tokens="spaces", lowercase=False)
    assert tokenise("a <PAD> <SOS> <UNK>", config) == ("a", "<UNK>", "<UNK>", "<UNK>")


def test_rare_words_of_training_are_unknown(tmp_path: Path) -> None:
    rows = [("a", "x x x y y"), ("b", "x x z")]
    path = written(tmp_path / "a.tsv", tsv(rows))
    task = classification(data=path, validation=path, test=path)
    assert task.source_vocabulary.words == ("<PAD>", "<SOS>", "<UNK>", "x")
    assert task.rows["test"].source.tolist() == [[3, 3, 3, 2, 2], [3, 3, 2, 0, 0]]
    assert task.rows["test"].target.tolist() == [[2], [3]]
    assert len(classification(data=path, validation=path, test=path, minimum=2)
               .source_vocabulary) == 5  # fmt: skip


def test_long_texts_are_left_out_or_cut(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", tsv([*ROWS, ("bad", "word " * 50)]))
    task = classification(data=path, longest=20)
    assert task.skipped == {"texts over 20 words": 1}
    task = classification(data=path, longest=20, too_long="cut")
    assert max(batch.source.shape[1] for batch in task.rows.values()) == 20
    assert sum(map(len, task.rows.values())) == 31


def test_validation_is_at_most_so_many_of_its_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", tsv(ROWS))
    keys = {"data": path, "validation": path, "test": path}
    task = classification(**keys, most_validation=10)
    assert [len(task.rows[part]) for part in ("train", "validation", "test")] == [30, 10, 30]
    assert len(classification(**keys, most_validation=30).rows["validation"]) == 30
    again = classification(**keys, most_validation=10)
    assert texts(again, "validation") == texts(task, "validation")
    assert "has no effect" in faults(**keys, held_out=3)[0]


def test_repeated_texts_are_not_held_out_and_trained_on(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", tsv(ROWS * 2))
    task = classification(data=path)
    assert task.skipped == {"repeated texts": 30}
    assert sum(map(len, task.rows.values())) == 30


BAD = {
    ("a.tsv", "no tab\n"): "there is no column '2' (there is: 1)",
    ("a.tsv", "good\t \n"): "the text is empty",
    ("a.tsv", " \tx\n"): "the label is empty",
    ("a.tsv", "\n"): "the line is empty",
    ("a.csv", '"a"b,c\n'): "this is not csv",
    ("a.csv", "\n"): "the line is empty",
    ("a.jsonl", "{\n"): "this is not JSON",
    ("a.jsonl", "[1]\n"): "this is not an object",
    ("a.jsonl", '{"label": "x"}\n'): "there is no column 'text' (there is: label)",
}


@pytest.mark.parametrize(("name", "line"), BAD, ids=[str(n) for n in range(len(BAD))])
def test_bad_lines_are_told_or_skipped(tmp_path: Path, name: str, line: str) -> None:
    make = {
        "a.tsv": lambda row: f"{row[0]}\t{row[1]}\n",
        "a.csv": lambda row: f'{row[0]},"{row[1]}"\n',
        "a.jsonl": lambda row: json.dumps({"label": row[0], "text": row[1]}) + "\n",
    }[name]
    rows = [make(row) for row in ROWS]
    path = written(tmp_path / name, "".join([*rows[:3], line, *rows[3:]]))
    first, advice = faults(data=path)
    assert first.startswith(f"{path}, line 4: {BAD[name, line]}")
    assert "task.bad_lines=skip" in advice
    task = classification(data=path, bad_lines="skip")
    assert sum(task.skipped.values()) == 1
    assert sum(map(len, task.rows.values())) == 30


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_bytes_that_are_no_text(tmp_path: Path, name: str) -> None:
    between = b"\t" if name == "a.tsv" else b","
    rows = [between.join([b"ab"[n % 2 : n % 2 + 1], b"text %d" % n]) for n in range(20)]
    (tmp_path / name).write_bytes(b"\n".join([*rows, between.join([b"a", b"caf\xe9"])]))
    assert "line 21" in faults(data=str(tmp_path / name))[0]
    assert "UTF-8" in faults(data=str(tmp_path / name))[0]


def test_settings_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="name a file of labelled texts"):
        Classification.Config()
    assert faults(data=str(tmp_path / "no.tsv")) == (
        f"There is no file {tmp_path / 'no.tsv'}. Check task.data.",
    )
    path = written(tmp_path / "a", "just words\n")
    assert "Set task.format" in faults(data=path)[0]
    path, other = written(tmp_path / "a.tsv", tsv(ROWS)), written(tmp_path / "b.tsv", "ugly\tx\n")
    assert faults(data=path, validation=path, test=other) == (
        "The texts of task.test have the label 'ugly', which training has not: it has 2 labels"
        " ('bad', 'good'). Check task.label_column, or hold out fewer texts.",
    )
    many = written(tmp_path / "c.tsv", tsv([(f"{n:02} {'x' * 5000}", "words") for n in range(40)]))
    (fault,) = faults(data=path, validation=path, test=many)
    assert "have 40 labels ('00 xxx" in fault and "…)" in fault and len(fault) < 1000


@pytest.mark.parametrize(
    ("name", "settings", "words", "sizes"),
    [
        (
            "sst2/train.tsv.gz", {"label_column": "2", "text_column": "1", "tokens": "spaces",
             "validation": "sst2/dev.tsv.gz", "test": "sst2/test.tsv.gz"},
            4945, (6920, 872, 1821),
        ),
        (
            "ag_news/train_first3000_per_class.tsv.gz",
            {"text_column": "2-", "quoted": True, "keep": "1,3", "integers": "unknown",
             "validation": "ag_news/test.csv.gz", "test": "ag_news/test.csv.gz"},
            7203, (6000, 3800, 3800),
        ),
        (
            "newsgroups20_baseball_hockey/bydate_train.jsonl.gz",
            {"integers": "unknown", "underscores": "split",
             "validation": "newsgroups20_baseball_hockey/bydate_test.jsonl.gz",
             "test": "newsgroups20_baseball_hockey/bydate_test.jsonl.gz"},
            None, (1197, 796, 796),
        ),
    ],
)  # fmt: skip
def test_published_sets_have_their_sizes(
    real: Callable[[str], Path],
    name: str,
    settings: dict[str, object],
    words: int | None,
    sizes: tuple[int, int, int],
) -> None:
    files = {key: str(real(str(settings[key]))) for key in ("validation", "test")}
    task = classification(**{**settings, **files, "data": str(real(name))})
    assert tuple(len(task.rows[part]) for part in ("train", "validation", "test")) == sizes
    assert words is None or len(task.source_vocabulary) == words
    assert len(task.target_vocabulary) == 4


def test_a_held_out_file_without_texts_is_told(tmp_path: Path) -> None:
    path, empty = written(tmp_path / "a.tsv", tsv(ROWS)), written(tmp_path / "e.tsv", "\n")
    told = faults(data=path, validation=empty, test=path, bad_lines="skip")
    assert told == (f"{empty}: there is no text to use in it (task.validation).",)


def test_null_is_no_label(tmp_path: Path) -> None:
    row = '{"label": null, "text": "a b"}\n'
    assert "line 1" in faults(data=written(tmp_path / "a.jsonl", row * 5))[0]


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ("2", "b"), ("2-", "b c d"), ("1,3-", "a c d"), ("12", "l"), ("text-", "whole"),
        ("4", None), ("text", None),
    ],
)  # fmt: skip
def test_columns_are_joined(columns: str, wanted: str | None) -> None:
    """`2-` is all from 2 on; a name may end in `-`; a number of two digits is one column."""
    from regard.tasks.text._labelled_text import _join_columns
    from regard.tasks.text_files import Faults

    fields = {"1": "a", "2": "b", "3": "c", "5": "d", "text-": "whole"}
    if columns == "12":
        fields = {"1": "a", "12": "l"}
    faults = Faults()
    assert _join_columns(fields, columns, "file", 3, faults) == wanted
    assert (sum(faults.counts.values()) == 1) == (wanted is None)
