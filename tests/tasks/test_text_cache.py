"""Corpora of any size: cut in pieces, kept in a cache, gone on with, checked, shared."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.cache import one_at_a_time
from regard.errors import RegardError
from regard.tasks import EOS, TASKS, Batch, CorpusTask
from regard.tasks.corpus import choose_rows, partition
from regard.tasks.text import _counts, _cut, _draft, _old, _repeats, _text_task
from regard.tasks.text import translation as translation_module
from regard.tasks.text._counts import WordCounts
from regard.tasks.text._pieces import find_pieces
from regard.tasks.text._repeats import find_repeats
from regard.tasks.text_files import Faults, stream_lines

rng = np.random.default_rng(0)
WORDS = [f"w{n}" for n in range(40)]
PAIRS = [
    (" ".join(rng.choice(WORDS, 1 + n % 9)), " ".join(rng.choice(WORDS, 1 + n % 7)).upper())
    for n in range(300)
]
PAIRS += PAIRS[:50]  # fmt: skip


def write(path: Path, pairs: list[tuple[str, str]] = PAIRS) -> str:
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    return str(path)


def make(name: str, **settings: object) -> CorpusTask:
    kind = TASKS[name]
    made = kind(kind.Config.model_validate({"held_out": 20, **settings}))
    assert isinstance(made, CorpusTask)
    return made


def lists(batch: Batch) -> list[tuple[list[int], list[int]]]:
    columns = batch.source, batch.source_lengths, batch.target, batch.target_lengths
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [(a[:n], b[:m]) for a, n, b, m in rows]


def everything(task: CorpusTask) -> Any:
    rows = {name: lists(batch) for name, batch in task.rows.items()}
    return rows, task.source_vocabulary, task.target_vocabulary, task.skipped  # type: ignore[attr-defined]


def test_rows_are_those_of_a_plain_program(tmp_path: Path) -> None:
    """All in memory, as one would write it."""
    task = make("parallel", source=write(tmp_path / "f"), vocabulary=30, longest=8)
    pairs = [(tuple(a.split()), tuple(b.lower().split())) for a, b in PAIRS]
    once = list(dict.fromkeys(p for p in pairs if len(p[0]) <= 8))
    validation, test, rest = partition(len(once), [20, 20], "x")
    parts = {"train": rest, "validation": validation, "test": test}
    for side in (0, 1):
        counts = Counter(word for place in rest for word in once[place][side])
        ranked = sorted(counts, key=lambda word: (-counts[word], word))[:30]
        numbers = {word: 4 + n for n, word in enumerate(ranked)}
        for name, places in parts.items():
            wanted = [[*(numbers.get(w, 3) for w in once[p][side]), EOS] for p in places]
            assert [row[side] for row in lists(task.rows[name])] == wanted


@pytest.mark.parametrize("name", ["parallel", "translation", "classification"])
def test_pieces_of_any_size_give_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(f"{'ab'[len(b) % 2]}", a) for a, b in PAIRS] if name == "classification" else PAIRS
    key = "data" if name == "classification" else "source"
    given = {key: write(tmp_path / "f", rows), **({"pieces": 45} if name == "translation" else {})}
    whole = everything(make(name, **given))
    for number, (size, jobs) in enumerate([(7, 1), (100, 1), (64, 2)]):
        monkeypatch.setenv("REGARD_CACHE", str(tmp_path / str(number)))
        monkeypatch.setattr(_cut, "ROWS", size)
        monkeypatch.setattr(_repeats, "AT_ONCE", size)
        monkeypatch.setattr(_counts, "MOST", size)
        monkeypatch.setattr(_draft, "ALONE", 0 if jobs > 1 else 2**30)
        assert everything(make(name, **given)) == whole
    (folder,) = (path for path in (tmp_path / "0" / "corpora").iterdir() if path.is_dir())
    left = {path.suffix for path in folder.iterdir()}
    assert left == {".json", ".numbers", ".starts", ".lengths"}, "nothing else is left behind"


def test_it_is_made_once_and_checked_whenever_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "f")
    first = everything(make("parallel", source=path))
    (folder,) = (p for p in (tmp_path / "cache" / "corpora").iterdir() if p.is_dir())
    made: list[Path] = []
    original = _text_task.make_corpus
    monkeypatch.setattr(
        _text_task, "make_corpus", lambda task, place: made.append(place) or original(task, place)
    )
    assert everything(make("parallel", source=path, padding="read")) == first
    assert everything(make("parallel", source=write(tmp_path / "copy"))) == first
    assert made == []
    for file in sorted(folder.iterdir()):
        for damage in ("flip", "cut", "gone"):
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 8
            if damage == "gone":
                file.unlink()
            else:
                file.write_bytes(content if damage == "flip" else content[:-1])
            made.clear()
            assert everything(make("parallel", source=path)) == first, (file, damage)
            assert made == [folder]
    assert make("parallel", source=path, longest=5) and len(made) == 2, "other settings"
    write(tmp_path / "f", PAIRS[:200])
    assert make("parallel", source=path) and len(made) == 3, "other content"


def test_what_was_cut_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "f")
    monkeypatch.setattr(_cut, "ROWS", 10)
    calls: list[Path] = []
    original = _draft.cut_piece

    def cut(rows: Any, cutter: Any, place: Path) -> None:
        calls.append(place)
        if len(calls) == 20:
            raise KeyboardInterrupt
        original(rows, cutter, place)

    monkeypatch.setattr(_draft, "cut_piece", cut)
    with pytest.raises(KeyboardInterrupt):
        make("parallel", source=path)
    calls[5].write_bytes(calls[5].read_bytes()[:-9])  # and one is damaged
    calls[7].write_bytes(b"")
    damaged = {calls[5], calls[7]}
    calls.clear()
    calls += [Path()] * 20
    found = everything(make("parallel", source=path))
    assert len(calls) - 20 == 35 - 19 + 2 and damaged < {*calls}
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "other"))
    assert everything(make("parallel", source=path)) == found


PROGRAM = """
import hashlib, sys
from regard.tasks import TASKS
from regard.tasks.text import _cut
_cut.ROWS = 200
kind = TASKS["parallel"]
task = kind(kind.Config(source=sys.argv[1]))
batch = task.train_batch(3, 64, 1)
print(hashlib.sha256(batch.source.numpy().tobytes() + batch.target.numpy().tobytes()).hexdigest())
"""


def start(path: str, cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, path],
        env={**os.environ, "REGARD_CACHE": str(cache)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_killed_and_made_by_several_at_once(tmp_path: Path) -> None:
    many = [(f"{a} {n} {n % 7}", f"{b} {n}") for n, (a, b) in enumerate(PAIRS * 20)]
    path, cache = write(tmp_path / "f", many), tmp_path / "one"
    killed = start(path, cache)
    until = time.monotonic() + 60
    while time.monotonic() < until and not list(cache.glob("corpora/*.part/train-000003.npz")):
        time.sleep(0.01)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.communicate()[0] == "", "it was killed before it was done"
    both = [start(path, cache), start(path, cache)]
    said = {process.communicate(timeout=120)[0] for process in both}
    alone = start(path, tmp_path / "two").communicate(timeout=120)[0]
    assert said == {alone} and len(alone) == 65
    assert len([p for p in (cache / "corpora").iterdir() if p.is_dir()]) == 1


def test_pieces_of_words_are_those_of_sentences(tmp_path: Path) -> None:
    """A word's pieces do not depend on its neighbours, so each word is looked up once."""
    odd = [
        "a  b",
        "x\u00a0y z",
        "caf\u00e9 e\u0301",
        "\u3000wide \uff21",
        "tab\tin",
        "1,5 €…",
        "\u200b q",
    ]
    text = [*(text for pair in PAIRS for text in pair), *odd]
    model = find_pieces(text, 63)
    whole = model.processor.encode(text)  # SentencePiece itself, sentence by sentence
    assert model.encode(text) == whole
    assert [n for word in model.encode(text[5].split(" ")) for n in word] == whole[5]


def test_pieces_are_looked_for_in_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    original = translation_module.find_pieces
    monkeypatch.setattr(translation_module, "SAMPLE", 100)
    monkeypatch.setattr(
        translation_module, "find_pieces", lambda s, n: seen.append(s) or original(s, n)
    )
    monkeypatch.setattr(_cut, "ROWS", 16)
    path = write(tmp_path / "f")
    make("translation", source=path, pieces=45)
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "again"))
    make("translation", source=path, pieces=45)
    assert seen[0] == seen[1] and len(seen[0]) == 200
    drawn = list(zip(seen[0][::2], seen[0][1::2], strict=True))
    assert set(drawn) <= set(PAIRS)
    places = [PAIRS.index(pair) for pair in drawn]
    assert places == sorted(places) and places[0] < 40 and places[-1] > 260, "from all over"


def test_a_line_without_end_takes_no_memory(tmp_path: Path) -> None:
    path, size = tmp_path / "f", 2**24
    path.write_bytes(b"good\n" + "é".encode() * size + b"\ngood\n")
    faults = Faults()
    tracemalloc.start()
    assert list(stream_lines(path, faults)) == ["good", None, "good"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size / 4
    assert "line 2: over 10000 characters are too many" in faults.sentences[0]


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_draft, "find_repeats", fail)
    with pytest.raises(RegardError, match="another folder by REGARD_CACHE"):
        make("parallel", source=write(tmp_path / "f"))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 30), max_size=120), st.integers(1, 20), st.integers(1, 50))
def test_repeats_are_found(rows: list[int], size: int, at_once: int) -> None:
    import tempfile

    digests = np.array([[row % 5, row] for row in rows], np.uint64).reshape(-1, 2)
    seen: set[int] = set()
    wanted = [row in seen or bool(seen.add(row)) for row in rows]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_repeats, "AT_ONCE", at_once)
        pieces = (digests[n : n + size] for n in range(0, len(rows), size))
        assert find_repeats(pieces, len(rows), Path(folder)).tolist() == wanted


def test_counts_that_go_to_files_are_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_counts, "MOST", 5)
    counts, wanted = WordCounts(tmp_path, "x"), Counter[str]()
    for _ in range(30):
        words = [f"é{n}" for n in rng.choice(40, 6, replace=False)]
        times = rng.integers(0, 4, 6)
        counts.add(words, times)
        wanted.update({word: int(n) for word, n in zip(words, times, strict=True) if n})
    assert len(counts.files) > 3
    assert sorted(counts) == sorted(wanted.items())
    assert json.loads(counts.files[0].read_text().splitlines()[0])


def test_held_out_rows_of_a_very_large_corpus() -> None:
    validation, test = choose_rows(10**9, [500, 300], "x")
    assert len({*validation.tolist(), *test.tolist()}) == 800
    assert (np.diff(validation) > 0).all() and validation.max() > 9 * 10**8
    assert [part.tolist() for part in choose_rows(50, [3, 4], "x")] == [
        part.tolist() for part in partition(50, [3, 4], "x")[:-1]
    ]


# Corpora that nobody will open again.


def test_old_corpora_are_found_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    corpora = tmp_path / "cache" / "corpora"
    assert _old.find_old() == []
    texts = [write(tmp_path / f"{n}.tsv", PAIRS[n:]) for n in range(3)]
    made = {}
    for text in texts:
        before = {*corpora.glob("*")}
        make("parallel", source=text)
        (made[text],) = (path for path in {*corpora.glob("*")} - before if path.is_dir())
    assert _old.find_old() == []
    Path(texts[0]).unlink()
    Path(texts[1]).write_text(Path(texts[1]).read_text().replace("w1", "w2"))
    half = corpora / f"{'0' * 32}.part"
    busy = corpora / f"{'1' * 32}.part"
    for folder in (half, busy):
        folder.mkdir()
        (folder / "train-000000.npz").write_bytes(b"something")
    with one_at_a_time(busy.with_suffix(".lock")):
        old = _old.find_old()
    assert {*old} == {made[texts[0]], made[texts[1]], half}
    assert _old.measure_sizes([half]) == 9
    _old.remove_old(old)
    assert {p for p in corpora.iterdir() if p.is_dir()} == {made[texts[2]], busy}
    monkeypatch.setattr(_old, "hash_reader", lambda kind: "another version")
    assert made[texts[2]] in _old.find_old()
    make("parallel", source=texts[2])  # what was kept is still read


def test_where_nothing_can_be_kept_a_corpus_is_made_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> Any:
        raise OSError("read-only")

    monkeypatch.setattr(_text_task, "one_at_a_time", refuse)
    with _text_task._reserve(tmp_path / "kept") as place:
        assert place.name == "corpus" and place.parent.is_dir()
        assert place.parent.name.startswith("regard-")
    assert not place.parent.exists()
