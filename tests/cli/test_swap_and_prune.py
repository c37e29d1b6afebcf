"""`regard swap` and `regard prune` as their users meet them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Command

import regard as library

SMALL = {"hidden": 6, "updates": 4, "batch": 4, "held_out": 6}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two runs that fit each other, one that does not, one that is not finished, and a file."""
    out = tmp_path_factory.mktemp("made")
    runs = {
        "one": library.train("one-to-one", "aed", 0, out, **SMALL),
        "two": library.train("one-to-one", "aed", 1, out, **SMALL),
        "wide": library.train("one-to-one", "aed", 0, out, **{**SMALL, "hidden": 8}),
        "cut": library.train("one-to-one", "aed", 2, out, **SMALL),
    }
    (runs["cut"].folder / "DONE").unlink()
    (out / "text").write_text("in the way")
    return {**{name: run.folder for name, run in runs.items()}, "text": out / "text"}


def test_swap(regard: Command, made: dict[str, Path], tmp_path: Path) -> None:
    words = ["swap", "--into", made["one"], "--from", made["two"], "--into", made["two"],
             "--from", made["one"], "--updates", "2", "--jobs", "1",
             "--out", tmp_path / "figures"]  # fmt: skip
    done = regard(*words, "--component", "encoder", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "quiet where there is no terminal"
    found = json.loads(done.stdout)
    assert (found["instrument"], found["component"], found["seeds"]) == ("swap", "encoder", 2)
    for stage in ("as it was", "swapped", "retrained"):
        value = found["values"][f"accuracy {stage}"]
        assert value["seeds"] == 2 and 0 <= value["mean"] <= 1 and len(value["interval"]) == 2
    for run in found["runs"]:
        new = library.load_run(run["retrained"])
        assert new.done and new.folder.parent == made["one"].parent
        assert new.config.training.freeze == ("encoder",)
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {f"swap.{end}" for end in ("json", "csv", "svg", "html")}
    again = regard(*words[:5], "--component", "encoder", "--updates", "2", "--jobs", "1")
    assert again.returncode == 0, again.stderr
    assert "encoder swapped, 1 pair" in again.stdout and "retrained" in again.stdout
    assert found["runs"][0]["retrained"] in again.stdout, "made once, however often it is asked"


def test_swap_several_components(regard: Command, made: dict[str, Path], tmp_path: Path) -> None:
    done = regard(
        "swap", "--into", made["one"], "--from", made["two"], "--component", "output",
        "--component", "decoder.W_hh", "--updates", "1", "--jobs", "1", "--runs", tmp_path / "new",
        "--out", tmp_path / "figures", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found) == ["output", "decoder.W_hh"]
    assert {Path(f["runs"][0]["retrained"]).parent for f in found.values()} == {tmp_path / "new"}
    assert {p.name for p in (tmp_path / "figures").iterdir()} == {"output", "decoder.W_hh"}


def test_prune(regard: Command, made: dict[str, Path], tmp_path: Path) -> None:
    done = regard(
        "prune", made["one"], "--with", made["two"], "--keep", "0.5", "--updates", "2",
        "--jobs", "1", "--runs", tmp_path / "new", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert (found["what"], found["keep"], found["seeds"]) == ("units", 0.5, 2)
    for stage in ("as it was", "pruned", "retrained, mask held", "retrained, mask free"):
        assert found["values"][f"accuracy {stage}"]["seeds"] == 2
    assert len(list((tmp_path / "new").glob("*/DONE"))) == 4
    done = regard("prune", made["one"], "--what", "weights", "--mask", "none", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "The strongest 0.05 of weights kept" in done.stdout
    assert (tmp_path / "prune.svg").is_file() and str(tmp_path) in done.stdout


FAULTS: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "nowhere": (
        ("swap", "--into", "nowhere", "--from", "no", "--component", "encoder"),
        ["nowhere is not a run", "no is not a run"],
    ),
    "unfinished": (
        ("swap", "--into", "cut", "--from", "one", "--component", "encoder"),
        ["is not finished"],
    ),
    "component": (
        ("swap", "--into", "one", "--from", "two", "--component", "encodr", "--component", "focus"),
        ["Did you mean 'encoder'? Known: decoder, ", "no component 'focus'"],
    ),
    "shapes": (
        ("swap", "--into", "one", "--from", "wide", "--component", "encoder"),
        ["encoder.starts.0' is 1 x 6 and 1 x 8", "is 18 x 6 and 24 x 6", "is 18 x 6 and 24 x 8",
         "bias_ih' is 18 and 24"],
    ),
    "pairs": (
        ("swap", "--into", "one", "--from", "two", "--from", "one", "--component", "encoder"),
        ["1 receiving run and 2 donors"],
    ),
    "both times": (
        ("swap", "--into", "one", "--from", "two", "--component", "encoder", "--updates", "1",
         "--epochs", "1"),
        ["not both"],
    ),
    "epochs": (
        ("prune", "one", "--epochs", "1"), ["draws its examples"],
    ),
    "keep": (("prune", "one", "--keep", "1.5"), ["keep=1.5 does not fit"]),
    "all at once": (
        ("prune", "nowhere", "--keep", "-1", "--what", "weight", "--mask", "fre"),
        ["nowhere is not a run", "Did you mean 'weights'", "Did you mean 'free'", "keep=-1"],
    ),
    "a file": (("prune", "one", "--out", "text"), ["is a file. Give --out a folder"]),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_told_at_once(
    regard: Command, fault: str, made: dict[str, Path], tmp_path: Path
) -> None:
    words, parts = FAULTS[fault]
    before = sorted(made["one"].parent.rglob("*"))
    done = regard(*(made.get(word, word) for word in words))
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr
    assert all(part in done.stderr for part in parts), done.stderr
    assert len(done.stderr.strip().splitlines()) == len(parts), done.stderr
    assert sorted(made["one"].parent.rglob("*")) == before, "nothing is left behind"


def test_what_the_parser_refuses(regard: Command, made: dict[str, Path]) -> None:
    done = regard("swap", "--into", made["one"], "--component", "encoder")
    assert done.returncode == 2 and "--from" in done.stderr
    done = regard("prune", made["one"], "--updates", "-1")
    assert done.returncode == 2 and "--updates" in done.stderr
