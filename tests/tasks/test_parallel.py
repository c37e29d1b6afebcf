from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.tasks import EOS
from regard.tasks.text._words import split_words
from regard.tasks.text.parallel import Parallel

GOOD = [(f"The {n} dogs.", f"Les {n} chiens !") for n in range(20)]


def table(pairs: list[tuple[str, str]]) -> bytes:
    return "".join(f"{source}\t{target}\n" for source, target in pairs).encode()


def parallel(**settings: object) -> Parallel:
    return Parallel(Parallel.Config.model_validate({"held_out": 2, **settings}))


def written(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def faults(**settings: object) -> tuple[str, ...]:
    with pytest.raises(RegardError) as caught:
        parallel(**settings)
    return caught.value.faults


def sentences(task: Parallel) -> list[tuple[str, str]]:
    batch = task.rows["train"]
    return [
        (
            " ".join(task.source_vocabulary.decode(source)),
            " ".join(task.target_vocabulary.decode(target)),
        )
        for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("Go.", "go ."),
        ("L'ami (de Zoé) va-t-il bien?", "l'ami ( de zoé ) va-t-il bien ?"),
        ("« Non »\u202f!", "« non » !"),
        ("'Twas so-called 3.5€...", "' twas so-called 3 . 5 € . . ."),
        ("e\u0301te\u0301", "été"),
        ("हिन्दी। 😀", "हिन्दी । 😀"),
    ],
)
def test_punctuation_is_split_off(text: str, split: str) -> None:
    assert " ".join(split_words(text, lowercase=True)) == split


def test_case_can_be_kept() -> None:
    assert split_words("Go Home", lowercase=False) == ("Go", "Home")


@pytest.mark.parametrize("packed", [False, True])
def test_one_file_or_two_give_the_same(tmp_path: Path, packed: bool) -> None:
    pack = gzip.compress if packed else bytes
    one = written(tmp_path / "both", pack(b"\xef\xbb\xbf" + table(GOOD)))
    sides = ["\r\n".join(side).encode() for side in zip(*GOOD, strict=True)]
    two = [written(tmp_path / str(i), pack(side)) for i, side in enumerate(sides)]
    single, double = parallel(source=one), parallel(source=two[0], target=two[1])
    assert sentences(single) == sentences(double)
    assert len(sentences(single)) == 16
    assert set(sentences(single)) < {(f"the {n} dogs .", f"les {n} chiens !") for n in range(20)}
    assert single.config.files() == (Path(one),)
    assert double.config.files() == (Path(two[0]), Path(two[1]))


def test_rare_words_become_unknown(tmp_path: Path) -> None:
    task = parallel(source=written(tmp_path / "f", table(GOOD)), vocabulary=3)
    assert set(task.source_vocabulary.words[4:]) == {"the", "dogs", "."}
    assert task.rows["test"].source[0].tolist() == [
        *(task.source_vocabulary.numbers[word] for word in ("the", "<UNK>", "dogs", ".")), EOS
    ]  # fmt: skip
    assert task.source_vocabulary.words[3] == "<UNK>"


def test_long_and_repeated_sentences_are_left_out_and_counted(tmp_path: Path) -> None:
    more = [("a " * 9, "b"), ("a", "b " * 9), ("THE 3 dogs.", "Les 3 chiens!"), GOOD[5]]
    task = parallel(source=written(tmp_path / "f", table([*GOOD, *more])), longest=8)
    assert task.skipped == {"sentences over 8 words": 2, "repeated pairs": 2}
    assert sum(map(len, task.rows.values())) == 20


BAD = {
    b"\n": ("the line is empty", "empty lines"),
    b"  \r\n": ("the line is empty", "empty lines"),
    b"no tab here\n": ("there is no tab between two sentences", "lines without a tab"),
    b"one\t \n": ("one of the two sentences is empty", "empty lines"),
    b"\tone\n": ("one of the two sentences is empty", "empty lines"),
    b"caf\xe9\tcoffee\n": ("byte 4 is not UTF-8 text", "lines that are not UTF-8"),
    b"a" * 9_999 + b"\tb\n": ("10001 characters are too many", "lines over 10000 characters"),
}


@pytest.mark.parametrize("line", BAD, ids=[str(number) for number in range(len(BAD))])
def test_bad_lines_are_told_or_skipped(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path / "f", table(GOOD[:3]) + line + table(GOOD[3:]))
    what, kind = BAD[line]
    first, advice = faults(source=path)
    assert first.startswith(f"{path}, line 4: {what}")
    assert "task.bad_lines=skip" in advice
    task = parallel(source=path, bad_lines="skip")
    assert task.skipped == {kind: 1}
    assert len(sentences(task)) == 16


def test_ten_faults_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "f", b"no tab\n" * 25)
    told = faults(source=path)
    assert len(told) == 11
    assert told[9].startswith(f"{path}, line 10: ")
    assert told[10].startswith("15 more lines are bad. ")


def test_files_of_unequal_length(tmp_path: Path) -> None:
    sides = ["\n".join(side).encode() for side in zip(*GOOD, strict=True)]
    source = written(tmp_path / "s", sides[0] + b"\nOne.\nTwo.\nThree.\n")
    target = written(tmp_path / "t", sides[1])
    for settings, longer in (
        ({"source": source, "target": target}, source),
        ({"source": target, "target": source}, source),
    ):
        first, _ = faults(**settings)
        assert first.startswith(f"{longer}, line 21: the line has no partner in ")
        assert first.endswith(", nor do the 2 after it.")
        task = parallel(bad_lines="skip", **settings)
        assert task.skipped == {"lines without a partner": 3}


def test_a_bad_line_takes_its_partner_along(tmp_path: Path) -> None:
    source = written(tmp_path / "s", b"a\n\n" + b"".join(b"w%d\n" % n for n in range(9)))
    target = written(tmp_path / "t", b"a\nx\n" + b"".join(b"w%d\n" % n for n in range(9)))
    task = parallel(source=source, target=target, bad_lines="skip")
    assert all(first == second for first, second in sentences(task))
    assert "x" not in task.target_vocabulary.words


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    absent, other = str(tmp_path / "absent"), str(tmp_path / "other")
    assert faults(source=absent, target=other) == tuple(
        f"There is no file {path}. Check task.source and task.target." for path in (absent, other)
    )
    assert faults(source=str(tmp_path))[0].startswith(f"{tmp_path} is a folder")
    cut = written(tmp_path / "cut", gzip.compress(table(GOOD))[:-20])
    assert faults(source=cut)[0].startswith(f"{cut} is gzipped but damaged")


def test_nothing_left_is_told_with_reasons(tmp_path: Path) -> None:
    empty = written(tmp_path / "empty", b"")
    assert faults(source=empty)[0].startswith(
        f"No pair of sentences is left of {empty} (the file is empty)"
    )
    long = written(tmp_path / "long", table(GOOD))
    assert "(20 sentences over 2 words)" in faults(source=long, longest=2)[0]
    assert "task.held_out=10 sets 20 of 20" in faults(source=long, held_out=10)[0]


def test_a_target_needs_a_source() -> None:
    with pytest.raises(ValueError, match="target is set without source"):
        Parallel.Config(target="x")


def test_the_shipped_corpus_is_what_its_script_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "tools")
    import corpus  # type: ignore[import-not-found]

    made = corpus.corpus()
    assert corpus.as_file(made) == corpus.FILE.read_bytes()
    assert len(made) == len(dict(made)) == 4000


def test_the_shipped_corpus_is_small_and_french_is_longer() -> None:
    task = Parallel(Parallel.Config())
    assert task.skipped == {}
    assert 140 <= len(task.source_vocabulary) <= 260
    assert 140 <= len(task.target_vocabulary) <= 260
    train = task.rows["train"]
    assert train.target_lengths.float().mean() > train.source_lengths.float().mean() + 0.4


def test_french_loses_its_vowels_where_it_must() -> None:
    for _, text in sentences(Parallel(Parallel.Config())):
        french = text.split()
        for word, after in pairwise(french):
            vowel = after[0] in "aeiouéêh"
            short = {"je", "ne", "le", "la", "de", "que", "me", "ce", "ma"}
            assert not (vowel and word in short), french
            assert not (word in {"beau", "vieux"} and after in {"homme", "ami", "arbre"}), french
            assert word not in {"cet", "bel", "vieil"} or vowel, french


def test_tatoeba_is_read_quickly(real: Callable[[str], Path]) -> None:
    path = real("tatoeba/eng-fra.tsv.gz")

    def seconds(work: Callable[[], object]) -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    def read_plainly() -> set[str]:
        return {word for line in gzip.open(path, "rt", encoding="utf-8") for word in line.split()}

    task = Parallel(Parallel.Config(source=str(path)))
    # About six times the least that anyone must do, whatever else the machine does meanwhile.
    ratio = seconds(lambda: Parallel(task.config)) / min(seconds(read_plainly) for _ in range(3))
    assert ratio < 20
    assert sum(map(len, task.rows.values())) + sum(task.skipped.values()) == 142_787
    assert 10_000 < len(task.source_vocabulary) < len(task.target_vocabulary) <= 30_004


def test_multi30k_is_read_from_two_files(real: Callable[[str], Path]) -> None:
    source, target = real("multi30k/raw/train.en.gz"), real("multi30k/raw/train.fr.gz")
    task = Parallel(Parallel.Config(source=str(source), target=str(target)))
    assert sum(map(len, task.rows.values())) + sum(task.skipped.values()) == 29_000
