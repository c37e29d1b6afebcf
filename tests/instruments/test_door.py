"""One door: whatever is inspected, with whatever settings, is the obvious or one sentence."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

import brute
import numpy as np
import pytest
from changed import here

import regard
from regard import RegardError
from regard.instruments import INSTRUMENTS, sources
from regard.instruments.components import breakdown
from regard.instruments.words import aer, cooccurrence
from regard.recordings import Recording
from regard.recordings.decomposition import Decomposition
from regard.runs import Run

SMALL: dict[str, Any] = {"hidden": 8, "updates": 0, "held_out": 10}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    out = tmp_path_factory.mktemp("runs")
    return [regard.train("one-to-one", "aed", seed, out, **SMALL) for seed in range(2)]


@pytest.fixture(scope="module")
def other(runs: list[Run]) -> Run:
    """A run of another task."""
    return regard.train("reversal", "chapter36-attention", 0, runs[0].folder.parent, **SMALL)


@pytest.fixture(scope="module")
def recordings(runs: list[Run]) -> list[Recording]:
    return [run.record(n=30) for run in runs]


@pytest.fixture(scope="module")
def plain() -> Recording:
    """A recording that does not say where it comes from."""
    return brute.recording(brute.arrays(samples=20))


def refused(match: str, what: Any, name: str = "breakdown", /, **settings: Any) -> None:
    """One sentence or a few, for a person: what is wrong, and how to mend it."""
    with pytest.raises(RegardError, match=match) as caught:
        regard.inspect(what, name, **settings)
    assert all(fault.endswith((".", "?")) for fault in caught.value.faults)


def test_every_way_through_the_door_gives_the_same(
    runs: list[Run], recordings: list[Recording], tmp_path: Path
) -> None:
    wanted = breakdown(recordings[0], top=2)
    saved = tmp_path / "kept.safetensors"
    runs[0].record(n=30, out=saved)
    found = [
        recordings[0].inspect("breakdown", top=2),
        runs[0].inspect("breakdown", n=30, top=2),
        breakdown(runs[0], 2, n=30),
        regard.inspect(recordings[:1], "breakdown", top=2),
        regard.inspect((one for one in recordings[:1]), "breakdown", top="2"),
        regard.inspect(saved, "breakdown", top=np.int64(2)),
        regard.inspect(str(saved), "breakdown", top=2),
        regard.inspect(runs[0].folder, "breakdown", top=2, n=30),
        regard.inspect(str(runs[0].folder), "breakdown", top=2, n="30", split=None),
        regard.inspect(recordings[0].decomposition, "breakdown", top=2),
    ]
    for result in found:
        assert type(result) is type(wanted) and result.settings == wanted.settings
        assert result.estimates() == wanted.estimates()


def test_several_are_seeds(runs: list[Run], recordings: list[Recording]) -> None:
    found = regard.inspect(recordings, "breakdown")
    assert found.n == 2 and all(e.interval is not None for e in found.estimates().values())
    mixed = regard.inspect([recordings[0], runs[1].folder], "breakdown")
    assert mixed.first.values() == found.first.values() and mixed.n == 2
    assert regard.inspect(runs, "heatmaps").n == 2
    assert regard.inspect({"w": np.eye(3)}, "heatmaps").n == 1, "a mapping is one model"


def test_options_say_how_a_run_is_recorded(runs: list[Run]) -> None:
    asked = {"n": 7, "split": "test", "inputs": "teacher", "checkpoint": "last", "samples": 3}
    by_hand = {"seed" if name == "samples" else name: value for name, value in asked.items()}
    wanted = breakdown(runs[0].record(**by_hand)).estimates()
    assert runs[0].inspect("breakdown", **asked).estimates() == wanted
    as_text = {name: str(value) for name, value in asked.items()}
    assert runs[0].inspect("breakdown", **as_text).estimates() == wanted


def test_what_is_no_source(recordings: list[Recording], runs: list[Run], tmp_path: Path) -> None:
    wants = "Give a recording, a run"
    refused(f"None cannot be inspected. {wants}", None)
    refused(f"5 cannot be inspected. {wants}", 5)
    refused("A dict cannot be inspected", {})
    refused(f"1.0.* cannot be inspected. {wants}", np.ones(3))
    refused("OneToOne cannot be inspected", runs[0].task())
    refused("nothing was given", [])
    refused("nothing was given", iter(()))
    refused("None cannot be inspected", [recordings[0], None])
    refused("3 cannot be inspected", [recordings[0], runs[1], 3])
    refused("no run or recording .*nowhere.*regard ls runs", tmp_path / "nowhere")
    refused("no run or recording", "breakdown")
    refused("is not a run: it has no config.json", tmp_path)
    (tmp_path / "text").write_text("words")
    refused("not a whole recording", tmp_path / "text")
    refused("None cannot be inspected. Give a run, its folder, a PyTorch", None, "heatmaps")
    refused("None cannot be inspected. Give a run, its folder", None, "ablate")
    refused("None cannot be inspected. Give pairs", None, "cooccurrence")
    refused("None cannot be inspected. Give a file of links", None, "links")
    refused("There is no instrument 'breakdwn'. Did you mean 'breakdown'", recordings, "breakdwn")


def test_settings_that_do_not_fit(recordings: list[Recording], runs: list[Run]) -> None:
    one = recordings[0]
    refused("no setting of breakdown 'tpo'. Did you mean 'top'.*Known: ", one, tpo=3)
    refused("no setting of breakdown 'splt'. Did you mean 'split'", runs[0], splt="test")
    refused(r"top='many' does not fit breakdown: .*integer", one, top="many")
    refused(r"regularisation='l3' does not fit probe: .*'l2' or 'none'", one, "probe",
            regularisation="l3")  # fmt: skip
    refused("n='many' does not fit breakdown: .*integer", runs[0], n="many")
    refused("inputs='mine' does not fit breakdown: .*'own' or 'teacher'", runs[0], inputs="mine")
    refused("no split 'tset'", runs[0], split="tset")
    refused("no checkpoint '77'", runs[0], checkpoint=77)
    refused("n=0 does not fit", runs[0], n=0)
    refused("swap needs donors= and component=", runs[0], "swap")
    with pytest.raises(RegardError) as caught:
        one.inspect("breakdown", tpo=3, top="many", per_sample="perhaps")
    assert len(caught.value.faults) == 3, "all faults at once"
    each = "breakdown takes top, site, per_sample, head, layer, each once"
    with pytest.raises(RegardError, match=each):
        breakdown(one, 2, top=2)
    with pytest.raises(RegardError, match="each once"):
        breakdown(one, 2, None, False, 0, 0, 4)


def test_options_are_not_for_recordings(recordings: list[Recording]) -> None:
    refused("A recording was given, but n= would say how to record a run", recordings[0], n=5)
    refused(
        "but n= and split= would say.*leave out n= and split=", recordings[0], n=5, split="test"
    )
    refused("leave out checkpoint=", recordings[0].decomposition, checkpoint="best")
    assert recordings[0].inspect("breakdown", n=None, split=None).n == 1


def test_a_model_is_not_in_a_recording(recordings: list[Recording], tmp_path: Path) -> None:
    for name in ("ablate", "prune", "heatmaps"):
        for what in (recordings[0], recordings[0].decomposition, [recordings[0]]):
            refused("needs the model itself, and a recording does not hold it", what, name)
    saved = tmp_path / "r.safetensors"
    brute.recording(brute.arrays(), out=saved)
    refused("is a recording, but this instrument needs the model itself", saved, "ablate")
    refused("is a recording", saved, "cooccurrence")


def test_what_was_not_recorded_is_asked_for(recordings: list[Recording], runs: list[Run]) -> None:
    for name, what in (("lexical_probe", "lexical"), ("saliency", "saliency"), ("gates", "gates"),
                       ("optimal_attention", "values"), ("proxy_probe", "proxy")):  # fmt: skip
        refused(f"no {what}.*also=\\('{what}',\\).*--also {what}", recordings[0], name)
    refused("no gates", recordings[0], "probe", quantity="decoder.update")
    assert runs[0].inspect("lexical_probe", n=5).estimates(), "of a run it is recorded"


def test_not_the_same_twice(
    recordings: list[Recording], runs: list[Run], plain: Recording, tmp_path: Path
) -> None:
    one, run = recordings[0], runs[0]
    twice = "One of these .* is given twice.*pool=True"
    refused(twice, [one, one])
    refused(twice, [one, one.decomposition])
    refused(twice, [one, run])
    refused(twice, [run, run.folder], n=5)
    refused(twice, [run, Run.open(run.folder)], "ablate", n=5)
    refused(twice, [run, run], "heatmaps")
    model, table = run.model(), {"w": np.eye(3)}
    refused(twice, [model, model], "heatmaps")
    refused(twice, [table, table], "heatmaps")
    refused(twice, [plain, plain])
    refused(twice, [plain, plain.decomposition])
    saved = tmp_path / "r.safetensors"
    brute.recording(brute.arrays(), out=saved)
    refused(twice, [saved, str(saved)])
    assert regard.inspect([plain, saved], "breakdown").n == 2
    assert regard.inspect([one, one], "agreement").n == 1, "one may be held against itself"
    both = regard.inspect([one, one], "breakdown", pool=True)
    assert both.n == 2 and both.seeds[0].values() == both.seeds[1].values()


def test_only_seeds_of_one_configuration(
    recordings: list[Recording], runs: list[Run], other: Run
) -> None:
    odd = other.record(n=30)
    differing = "recordings differ in configuration and task and model.*pool=True"
    refused(differing, [recordings[0], odd], "sizes")
    refused("runs differ in their configuration", [runs[0], other], "ablate", n=5)
    refused("models differ in their configuration", [runs[0], other], "heatmaps", block="readout")
    refused("differ in inputs", [recordings[0], runs[1].record(n=30, inputs="teacher")])
    refused("differ in checkpoint", [recordings[0], runs[1].record(n=30, checkpoint=0)])
    for pool in (True, "true"):
        assert regard.inspect([recordings[0], odd], "sizes", pool=pool).n == 2
    assert regard.inspect([runs[0], other], "heatmaps", block="readout", pool=True).n == 2
    refused("differ in", [recordings[0], odd], "sizes", pool=False)
    refused("pool='perhaps' does not fit: it is true or false", recordings, "sizes", pool="perhaps")


def test_aer_pools_pieces_by_their_old_name_and_sources_by_the_new(
    recordings: list[Recording],
) -> None:
    assert aer(recordings[0], pool="max").settings["pieces"] == "max"
    assert aer([recordings[0], recordings[0]], pool=True).n == 2
    with pytest.raises(RegardError, match="pieces='most' does not fit aer"):
        aer(recordings[0], pool="most")


def test_settings_may_be_called_like_anything(runs: list[Run], tmp_path: Path) -> None:
    """`what` is what is inspected, and a setting of prune."""
    found = regard.inspect(runs[0], "prune", what="weights", mask="none", train=here)
    assert found.settings["what"] == "weights"
    assert runs[0].inspect("prune", what="weights", mask="none").estimates() == found.estimates()


def test_words_take_what_has_words(runs: list[Run]) -> None:
    found = cooccurrence(runs[0], n=20)
    assert found.estimates() == cooccurrence(runs[0].folder, n=20).estimates()
    assert regard.inspect(runs, "cooccurrence", n=20).n == 2
    assert regard.inspect(runs[0].task(), "ibm1", n=20).n == 1


def test_nothing_is_decomposed_for_those_who_do_not_want_it(
    recordings: list[Recording], runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("nobody wants this")

    kept = runs[0].record(n=30, inputs="teacher", also=("gates", "values", "lexical", "saliency"))
    monkeypatch.setattr(Decomposition, "of", refuse)
    for name in ("activations", "gates", "probe", "groups", "lexical_probe", "saliency", "aer",
                 "optimal_attention"):  # fmt: skip
        assert kept.inspect(name).estimates()
    assert regard.inspect([kept, recordings[1]], "agreement").n == 1
    for name in ("heatmaps", "connectivity", "polarity", "strength", "cooccurrence"):
        more = {"n": 20} if "n" in INSTRUMENTS[name].accepted else {}
        assert runs[0].inspect(name, **more).estimates()
    with pytest.raises(AssertionError, match="nobody wants"):
        kept.inspect("breakdown")


@pytest.mark.parametrize("name", ["probe", "groups"])
def test_gates_are_recorded_when_they_are_read(
    name: str, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    record = sources.record

    def look(run: Run, **options: Any) -> Recording:
        made = record(run, **options)
        seen.append(any(".gates." in array for array in made.names()))
        return made

    monkeypatch.setattr(sources, "record", look)
    settings: dict[str, Any] = {"n": 30, "splits": 1}
    for quantity in ("encoder.states", "queries", "decoder.gates.update", "decoder.update"):
        runs[0].inspect(name, quantity=quantity, label="position", **settings)
    runs[0].inspect(name, **settings)
    assert seen == [False, False, True, True, False]


def test_gates_that_a_model_does_not_have(tmp_path: Path) -> None:
    run = regard.train("one-to-one", "aed", 0, tmp_path, cell="tanh", **SMALL)
    refused("This model has no gates to record", run, "gates", n=5)
    refused("This recording has no gates", run.record(n=5), "gates")


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_a_signature_says_sources_and_then_settings(name: str) -> None:
    first, *settings = signature(INSTRUMENTS[name]).parameters.values()
    assert (first.name, first.default, first.annotation) == ("sources", first.empty, Any)
    assert [p.name for p in settings] == list(INSTRUMENTS[name].parameters)
