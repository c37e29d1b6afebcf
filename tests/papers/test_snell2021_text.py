"""The experiments of snell2021 on text: BLEU, the best attention, human word alignments."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regard.errors import RegardError
from regard.instruments.words.links import Alignment, match_links
from regard.papers import EXPERIMENTS
from regard.papers.framework.experiment import Experiment, Findings, Plan
from regard.papers.snell2021 import _aligned_text, _with_sets, aer, bleu, optimal
from regard.papers.snell2021._data_sets import find_sets
from regard.runs import Run, RunConfig, execute
from regard.tasks.text.translation import Translation

Check = Callable[[Experiment, Findings], None]
WORDS = {"der": "the", "hund": "dog", "mann": "man", "sieht": "sees", "ruft": "calls", "rot": "red"}
SMALL = {
    "task": {"pieces": None, "longest": None},
    "model": {"hidden": 6, "embedding": 6},
    "training": {"updates": 4, "batch": 4, "milestones": (0, 2), "evaluate_every": 4,
                 "checkpoint_every": 4},
}  # fmt: skip


def pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """Sentences and their translations word by word."""
    rng = np.random.default_rng(seed)
    rows = [list(rng.choice(list(WORDS), size=rng.integers(3, 6))) for _ in range(count)]
    return [(" ".join(row), " ".join(WORDS[word] for word in row)) for row in rows]


def written(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


@pytest.fixture
def multi30k(tmp_path: Path) -> str:
    """A folder with the files of Multi30k, and other sentences in them."""
    folder = tmp_path / "multi30k"
    for number, (name, count) in enumerate({"train": 60, "val": 6, "test_2016_flickr": 5}.items()):
        rows = pairs(count, number)
        for side, language in enumerate(("de", "en")):
            written(folder / "raw" / f"{name}.{language}.gz", [row[side] for row in rows])
    return str(folder)


@pytest.fixture
def alignments(tmp_path: Path) -> str:
    """A folder of aligned sentences whose words are in the same order in both languages."""
    folder = tmp_path / "aligned"
    rows = pairs(4, 9)
    straight = [[(k, k) for k in range(len(source.split()))] for source, _ in rows]
    for languages in aer.LANGUAGES:
        written(folder / f"{languages}.src-tgt.gz", [f"{a}  ||| {b} " for a, b in rows])
        gold = [" ".join(f"{i + 1}-{j + 1}" for i, j in row) for row in straight]
        written(folder / f"{languages}.gold.gz", gold)
        for start in _aligned_text.PROGRAMS.values():
            found = [" ".join(f"{i}-{j}" for i, j in row) for row in straight]
            written(folder / f"{start}.{languages}.{_aligned_text.JOINED}", found)
    return str(folder)


def small(config: RunConfig) -> RunConfig:
    parts = {
        name: getattr(config, name).model_copy(
            update={k: v for k, v in values.items() if hasattr(getattr(config, name), k)}
        )
        for name, values in SMALL.items()
    }
    return replace(config, **parts)


def trained(plan: Plan, folder: Path) -> dict[str, list[Run]]:
    return {name: [execute(small(c), folder) for c in group] for name, group in plan.items()}


def test_three_words_have_the_weights_of_the_paper() -> None:
    assert optimal.solve_counterexample() == pytest.approx((0, 0.5, 0.5), abs=1e-6)


def test_the_best_attention_of_a_model_that_adds_up(
    multi30k: str, tmp_path: Path, check_findings: Check
) -> None:
    experiment = EXPERIMENTS["snell2021/optimal"]({"multi30k": multi30k})
    plan = experiment.plan("quick")
    runs = trained(plan, tmp_path / "trained")
    findings = experiment.measure(runs, "quick")
    check_findings(experiment, findings)
    measures = findings.measures["snell.optimal"]
    assert measures["gap"].mean <= 1e-5
    assert measures["bleu_difference"].mean == pytest.approx(
        runs["additive"][0].metrics["bleu"] - runs["standard"][0].metrics["bleu"]
    )


def test_the_two_models_differ_in_their_output_alone(
    multi30k: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_with_sets, "count_updates", lambda *about: 10)
    plan = EXPERIMENTS["snell2021/optimal"]({"multi30k": multi30k}).plan("full")
    for ours, theirs in zip(plan["standard"], plan["additive"], strict=True):
        changed = {**ours.to_json()["model"], **optimal.ADDITIVE}
        assert theirs.to_json() == {**ours.to_json(), "model": changed}
    shared = EXPERIMENTS["snell2021/agreement"]({"multi30k": multi30k}).plan("full")
    assert plan["standard"] == shared["multi30k attention"]


def test_xi_in_bleu_on_the_runs_of_the_agreement_experiment(
    multi30k: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check_findings: Check
) -> None:
    experiment = EXPERIMENTS["snell2021/bleu"]({"multi30k": multi30k})
    plan = experiment.plan("quick")
    shared = EXPERIMENTS["snell2021/agreement"]({"multi30k": multi30k}).plan("quick")
    assert plan == {name: shared[name] for name in plan}
    scores = iter(range(100))
    monkeypatch.setattr(bleu, "bleu", lambda model, task, split, n: float(next(scores)))
    findings = experiment.measure(trained(plan, tmp_path / "trained"), "quick")
    check_findings(experiment, findings)
    measures = findings.measures["snell.bleu"]
    # Two runs with checkpoints at 0, 2 and 4: the highest are the last, 2 and 5.
    assert sorted(measures["multi30k_xi_best"].values) == [2, 5]
    assert all(0 <= value <= 5 for value in measures["multi30k_xi_beta"].values)


@pytest.mark.parametrize("name", ["optimal", "bleu", "aer"])
def test_without_data_an_experiment_says_what_to_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REGARD_DATA", raising=False)
    for scale in ("quick", "full"):
        lack = EXPERIMENTS[f"snell2021/{name}"]().lacks(scale)  # type: ignore[arg-type]
        assert lack is not None and "--data" in lack


def test_one_set_is_enough_unless_the_claims_are_about_another(
    multi30k: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REGARD_DATA", raising=False)
    written(tmp_path / "messages" / "en-nl.tsv.gz", ["a\tb"])
    other = {"debian_l10n": str(tmp_path / "messages")}
    assert EXPERIMENTS["snell2021/agreement"](other).lacks("full") is None
    lack = EXPERIMENTS["snell2021/bleu"](other).lacks("full")
    assert lack == "Multi30k, which does not come with Regard: --data multi30k=FOLDER"
    assert EXPERIMENTS["snell2021/bleu"]({"multi30k": multi30k}).lacks("full") is None


def test_a_quick_look_takes_two_sets_and_those_that_were_named(
    multi30k: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "debian_l10n" / "en-nl.tsv.gz", ["a\tb"])
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    assert [*find_sets({}, quick=True)] == ["multi30k"]
    assert [*find_sets({}, quick=False)] == ["multi30k", "debian_en_nl"]
    named = {"debian_l10n": str(tmp_path / "debian_l10n")}
    assert [*find_sets(named, quick=True)] == ["debian_en_nl"]


def test_texts_are_in_small_letters_and_from_all_over(tmp_path: Path) -> None:
    lines = [f"Word {k} .\tMot {k} ." for k in range(9)]
    written(tmp_path / "eng-fra.tsv.gz", lines)
    found, named = _aligned_text.read_texts({"tatoeba": str(tmp_path)}, 4)
    assert named == ["tatoeba"]
    assert found == [(("word", str(k), "."), ("mot", str(k), ".")) for k in (0, 2, 4, 6)]
    assert len(_aligned_text.read_texts({"tatoeba": str(tmp_path)}, 20)[0]) == 9


def test_soft_alignments_against_those_of_people(
    alignments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check_findings: Check
) -> None:
    monkeypatch.setitem(aer.MOST, "quick", 60)
    monkeypatch.setitem(aer.QUICK, "held_out", 5)
    experiment = EXPERIMENTS["snell2021/aer"]({"word_alignment": alignments})
    assert experiment.lacks("quick") is None
    runs = trained(experiment.plan("quick"), tmp_path / "trained")
    findings = experiment.measure(runs, "quick")
    check_findings(experiment, findings)
    measures = findings.measures["snell.aer"]
    assert measures["giza"].mean == measures["fast_align"].mean == 0
    assert all(0 <= value.mean <= 1 for value in measures.values())
    assert any("the shipped corpus" in line for line in findings.found)
    assert [c.training.updates for c in experiment.plan("full")["proxy"]] == [5000] * 5


def test_pieces_know_their_words(alignments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(aer.MOST, "quick", 60)
    monkeypatch.setitem(aer.QUICK, "held_out", 5)
    config = EXPERIMENTS["snell2021/aer"]({"word_alignment": alignments}).plan("quick")["proxy"][0]
    task = small(config).make_task()
    assert isinstance(task, Translation)
    given = [(("´", "dog"), ("hund", "der", "mann")), (("man",), ("mann",))]
    batch, sources, targets = aer.spell(task, given)
    for row, (numbers, words) in enumerate(zip(targets, (g[1] for g in given), strict=True)):
        for k, word in enumerate(words):
            inside = batch.target[row][numbers == k].tolist()
            assert task.pieces.processor.decode(inside).strip() == word
    assert sources[:, 0].tolist() == [-1, -1]  # the start of a sentence is no word
    assert sources[0].max() == 1 and sources[1].max() == 0


def test_counts_find_words_that_belong_together() -> None:
    rows = [(tuple(a.split()), tuple(b.split())) for a, b in pairs(200, 3)]
    once = [row for row in rows if len(set(row[0])) == len(row[0])][:20]
    straight = [Alignment.of((k, k) for k in range(len(source))) for source, _ in once]
    for links in aer.align_by_counts(rows, once).values():
        assert match_links(links, straight).error == 0


def test_a_file_of_aligned_sentences_that_does_not_fit_is_told_of(alignments: str) -> None:
    folder = Path(alignments)
    written(folder / "enfr.gold.gz", ["1-1"])
    with pytest.raises(RegardError, match="4 sentence pairs, but 1 lines of links"):
        _aligned_text.read_aligned(folder, "enfr")
    written(folder / "enfr.src-tgt.gz", ["one sentence alone"])
    with pytest.raises(RegardError, match=r"enfr\.src-tgt\.gz.*line 1.*\|\|\|") as caught:
        _aligned_text.read_aligned(folder, "enfr")
    assert str(caught.value).startswith(str(folder / "enfr.src-tgt.gz"))


def test_published_alignments_have_their_known_error(real: Callable[[str], Path]) -> None:
    aligned = _aligned_text.read_aligned(real("word_alignment"), "enfr")
    errors = {
        name: match_links(links, aligned.gold).error for name, links in aligned.programs.items()
    }
    assert errors == {
        "giza": pytest.approx(0.062, abs=5e-4),
        "fast_align": pytest.approx(0.121, abs=5e-4),
    }
