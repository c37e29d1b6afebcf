from __future__ import annotations

import builtins
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from regard.errors import RegardError
from regard.models import MODELS
from regard.tasks import EOS, PAD, SOS
from regard.tasks.text import _pieces as pieces_module
from regard.tasks.text.translation import Translation
from regard.training.bleu import Spoken, bleu, scorer, translations

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
PAIRS = [(f"The {a} of {b}.", f"La {b.upper()} de {a}!") for a in WORDS for b in WORDS]


def translation(**settings: object) -> Translation:
    if "test_source" not in settings:
        settings = {"held_out": 4, **settings}
    return Translation(Translation.Config.model_validate({"pieces": 60, **settings}))


def written(path: Path, pairs: list[tuple[str, str]], *sides: int) -> str:
    rows = ["\t".join(pair[side] for side in sides or (0, 1)) for pair in pairs]
    path.write_text("".join(f"{row}\n" for row in rows))
    return str(path)


def faults(**settings: object) -> tuple[str, ...]:
    with pytest.raises(RegardError) as caught:
        translation(**settings)
    return caught.value.faults


def test_both_sides_share_pieces_and_come_back_as_text(tmp_path: Path) -> None:
    task = translation(source=written(tmp_path / "f", PAIRS))
    assert task.source_vocabulary is task.target_vocabulary
    assert len(task.source_vocabulary) == 60
    assert task.source_vocabulary.words[:4] == ("<PAD>", "<SOS>", "<EOS>", "<UNK>")
    batch = task.split("test")
    assert (batch.source[:, 0] == SOS).all()
    said, right = task.texts(batch.target), task.references("test")
    assert said == right
    assert list(zip(task.texts(batch.source), right, strict=True)) == [
        pair for pair in PAIRS if pair[1] in right
    ], "held-out rows keep the order of the file"
    rubbish = torch.nn.functional.pad(batch.target, (0, 2), value=5)
    assert task.texts(rubbish) == right, "what comes after the end is not said"


def test_one_file_or_two_and_either_direction(tmp_path: Path) -> None:
    both = written(tmp_path / "both", PAIRS)
    (tmp_path / "a.gz").write_bytes(gzip.compress("\n".join(a for a, _ in PAIRS).encode()))
    other = written(tmp_path / "b", PAIRS, 1)
    one, two = translation(source=both), translation(source=str(tmp_path / "a.gz"), target=other)
    assert torch.equal(one.rows["train"].source, two.rows["train"].source)
    back = translation(source=both, backwards=True)
    flipped = translation(source=written(tmp_path / "flipped", [(b, a) for a, b in PAIRS]))
    assert torch.equal(back.rows["train"].target, flipped.rows["train"].target)
    assert back.references("test") == flipped.references("test") != one.references("test")


def test_held_out_files_are_taken_whole(tmp_path: Path) -> None:
    keys = {"source": written(tmp_path / "f", PAIRS),
            "validation_source": written(tmp_path / "v", PAIRS[:7]),
            "test_source": written(tmp_path / "t1", PAIRS[5:10], 0),
            "test_target": written(tmp_path / "t2", PAIRS[5:10], 1)}  # fmt: skip
    whole = translation(**keys).rows["train"]
    sides = torch.maximum(whole.source_lengths - 2, whole.target_lengths - 1)
    longest = int(sides.median())
    task = translation(**keys, longest=longest)
    assert len(task.rows["validation"]) == 7 and len(task.rows["test"]) == 5
    assert task.references("validation") == [target for _, target in PAIRS[:7]]
    long = int((sides > longest).sum())
    assert 0 < long < 100 == len(task.rows["train"]) + long
    assert task.skipped == {f"sentences over {longest} pieces": long}
    assert [path.name for path in task.config.files()] == ["f", "v", "t1", "t2"]
    assert "has no effect" in faults(**keys, held_out=3)[0]
    assert "raise task.longest" in faults(**{**keys, "longest": 1})[0]
    with pytest.raises(RegardError, match="no split 'dev'"):
        task.references("dev")


def test_words_are_joined_and_made_small_where_asked(tmp_path: Path) -> None:
    broken = [(a.replace("e ", "e@@ "), f"{b[:-4]}@@ {b[-4:]}") for a, b in PAIRS]
    task = translation(
        source=written(tmp_path / "f", broken), bpe="undo", lowercase=True, pieces=40
    )
    assert not any("@@" in word for word in task.source_vocabulary.words)
    assert all(text == text.lower() for text in task.references("test"))
    every = {b.lower() for _, b in PAIRS}
    assert set(task.references("test")) <= every


def test_a_small_text_gives_as_many_pieces_as_it_has(tmp_path: Path) -> None:
    path = written(tmp_path / "f", PAIRS)
    with pytest.raises(RegardError, match="too small"):
        translation(source=path, pieces=8000)
    count = len(translation(source=path, pieces=None).source_vocabulary)
    assert 20 < count < 8000
    again = translation(source=path, pieces=None)  # from the cache
    assert len(again.source_vocabulary) == count


def test_the_same_text_gives_the_same_pieces_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = [text for pair in PAIRS for text in pair]
    assert pieces_module.train(sentences, 60) == pieces_module.train(sentences, 60)
    first = pieces_module.find_pieces(sentences, 60)
    kept = list((tmp_path / "cache" / "pieces").iterdir())
    assert [path.suffix for path in kept] == [".model"]
    monkeypatch.setattr(pieces_module, "train", None)  # it is read, not made
    assert pieces_module.find_pieces(sentences, 60).vocabulary == first.vocabulary
    monkeypatch.undo()
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    kept[0].write_bytes(b"broken")
    assert pieces_module.find_pieces(sentences, 60).vocabulary == first.vocabulary
    assert kept[0].read_bytes() != b"broken"


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "file"))
    assert len(translation(source=written(tmp_path / "f", PAIRS)).source_vocabulary) == 60


def test_a_sentence_of_just_the_longest_size_stays(tmp_path: Path) -> None:
    path = written(tmp_path / "f", PAIRS)
    whole = translation(source=path).rows["train"].padded()
    sources, targets = whole.source_lengths - 2, whole.target_lengths - 1  # without start and end
    for longest in range(int(targets.min()), int(targets.max()) + 1):
        kept = translation(source=path, longest=longest).rows["train"].padded()
        fits = (sources <= longest) & (targets <= longest)
        if fits.any():
            assert len(kept) == int(fits.sum()), longest
            assert kept.source_lengths.tolist() == whole.source_lengths[fits].tolist()


def test_sizes_that_do_not_fit_the_text(tmp_path: Path) -> None:
    path = written(tmp_path / "f", PAIRS)
    many, few = faults(source=path, pieces=5000)[0], faults(source=path, pieces=10)[0]
    assert "too small for task.pieces=5000" in many and "Set task.pieces=" in many
    assert "task.pieces=10 is too few" in few
    most = int(many.split("Set task.pieces=")[1].split()[0])
    assert len(translation(source=path, pieces=most).source_vocabulary) == most


def test_bad_lines_and_settings(tmp_path: Path) -> None:
    path = written(tmp_path / "f", [*PAIRS[:3], ("", "x"), *PAIRS[3:]])
    first, advice = faults(source=path)
    assert first.startswith(f"{path}, line 4: one of the two sentences is empty")
    assert "task.bad_lines=skip" in advice
    assert translation(source=path, bad_lines="skip").skipped == {"empty lines": 1}
    doubled = translation(source=written(tmp_path / "d", PAIRS * 2))
    assert doubled.skipped == {"repeated pairs": 100}
    with pytest.raises(ValidationError, match=r"task\.source"):
        Translation.Config()
    with pytest.raises(ValidationError, match="test_target is set without test_source"):
        Translation.Config(source="a", test_target="b")


@pytest.mark.parametrize("package", ["sentencepiece", "sacrebleu"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == package:
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(RegardError, match=r"pip install 'regard\[text\]'"):
        scorer() if package == "sacrebleu" else pieces_module.find_pieces(["a"], 60)


def test_bleu_is_that_of_the_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sacrebleu

    task = translation(source=written(tmp_path / "f", PAIRS), held_out=20)
    assert isinstance(task, Spoken)
    config, kind = MODELS["encoder-decoder"]
    model = kind(config(hidden=8), 60, 60)
    said = translations(model, task, task.split("test"), width=2)
    alone = [translations(model, task, task.split("test")[i : i + 1], 2)[0] for i in range(20)]
    assert [text[:8] for text in said] == [text[:8] for text in alone], "in the rows' order"
    right = task.references("test")
    wanted = sacrebleu.corpus_bleu(said, [right], force=True).score
    assert bleu(model, task, "test", width=2) == pytest.approx(wanted)
    some = sacrebleu.corpus_bleu(said[:3], [right[:3]], force=True).score
    assert bleu(model, task, "test", width=2, n=3) == pytest.approx(some, abs=1.0)
    target = task.split("test").target
    rows = iter(task.split("test").source_lengths.argsort(stable=True).tolist())
    monkeypatch.setattr(
        "regard.training.bleu.beam",
        lambda _m, memory, *_: target[[next(rows) for _ in range(len(memory.states))]],
    )
    assert bleu(model, task, "test") == pytest.approx(100)


def test_multi30k_has_its_sizes(real: Callable[[str], Path]) -> None:
    folder = real("multi30k/raw/val.de.gz").parent
    keys = {f"{part}{side}": str(folder / f"{name}.{language}.gz")
            for part, name in (("", "val"), ("validation_", "val"), ("test_", "test_2016_flickr"))
            for side, language in (("source", "de"), ("target", "en"))}  # fmt: skip
    task = translation(**keys, pieces=1000)
    assert [len(task.rows[name]) for name in ("train", "validation", "test")] == [1014, 1014, 1000]
    assert (task.rows["test"].target[:, -1] != PAD).any()
    assert EOS in task.rows["test"].target[0].tolist()
    assert task.texts(task.rows["test"].target[:1]) == task.references("test")[:1]


def test_a_damaged_model_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flipped bit may leave a model that can be read, with other pieces."""
    from regard.tasks.text import _pieces

    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    words = [f"{a}{b}" for a in "abcdefgh" for b in "uvwxyz"]
    sentences = [f"{a} {b}" for a in words for b in words[:12]]
    right = _pieces.find_pieces(sentences, 40).vocabulary.words
    (kept,) = (tmp_path / "pieces").iterdir()
    whole = kept.read_bytes()
    for place in range(40, len(whole), len(whole) // 25):
        content = bytearray(whole)
        content[place] ^= 4
        kept.write_bytes(bytes(content))
        _pieces.load_pieces.cache_clear()
        assert _pieces.find_pieces(sentences, 40).vocabulary.words == right
    assert kept.read_bytes() == whole
