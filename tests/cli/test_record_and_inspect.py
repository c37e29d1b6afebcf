"""`regard record` and `regard inspect` as their users meet them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Command

import regard as library
from regard.instruments import INSTRUMENTS

SMALL = {"hidden": 8, "updates": 0, "held_out": 10}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two AED runs, a VED run, and a recording of the first and the last."""
    out = tmp_path_factory.mktemp("made")
    runs = {
        "aed": library.train("one-to-one", "aed", 0, out, **SMALL),
        "other": library.train("one-to-one", "aed", 1, out, **SMALL),
        "ved": library.train("one-to-one", "ved", 0, out, **SMALL),
    }
    places = {name: run.folder for name, run in runs.items()}
    for name in ("aed", "ved"):
        places[f"{name} file"] = out / f"{name}.safetensors"
        library.record(runs[name], n=40, out=places[f"{name} file"])
    (out / "text").write_text("no recording")
    return {**places, "text": out / "text", "empty": out}


def test_record_writes_a_file_that_can_be_inspected(
    regard: Command, made: dict[str, Path], tmp_path: Path
) -> None:
    file = tmp_path / "new" / "aed.safetensors"
    done = regard("record", made["aed"], "-n", "30", "--out", file, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert (Path(found["recording"]), found["samples"]) == (file, 30)
    assert found["arrays"]["encoder.states"] == {
        "axes": ["sample", "source", "hidden"],
        "shape": [30, 20, 8],
    }
    assert {"attention.queries", "decoder.words", "readout"} <= set(found["arrays"])
    assert len(library.load_recording(file)) == 30
    done = regard("inspect", file, "breakdown", "--top", "5", "--json")
    assert done.returncode == 0, done.stderr
    shares = json.loads(done.stdout)
    assert (shares["instrument"], shares["top"], shares["seeds"]) == ("breakdown", 5, 1)
    assert sum(shares["shares"].values()) == pytest.approx(1)
    assert list(shares["shares"])[:2] == ["temporal-temporal", "temporal-input"]
    again = library.breakdown(library.load_recording(file), top=5)
    assert shares["shares"] == pytest.approx(again.shares)


def test_record_in_shards_and_inspect_the_folder(
    regard: Command, made: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "many"
    order = ("record", made["aed"], "-n", "40", "--shards", "2", "--jobs", "1", "--out", folder)
    done = regard(*order, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (Path(found["recording"]), found["samples"]) == (folder, 40)
    done = regard("inspect", folder, "breakdown", "clusters", "sample=30", "least=2", "--json")
    assert done.returncode == 0, done.stderr
    both = json.loads(done.stdout)
    assert both["clusters"]["sample"] == both["breakdown"]["sample"] == {"rows": 30, "of": 40}
    done = regard("inspect", folder, "breakdown", "--jobs", "1", "--json")
    whole = library.breakdown(library.load_recording(made["aed file"])).shares
    assert json.loads(done.stdout)["shares"] == pytest.approx(whole, rel=1e-12)
    next(folder.glob("recording-00001-*")).unlink()
    done = regard("inspect", folder, "breakdown")
    assert done.returncode == 2 and "recording-00001-of-00002.safetensors is missing" in done.stderr


def test_several_instruments_and_several_seeds(
    regard: Command, made: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "figures"
    done = regard(
        "inspect", made["aed"], "breakdown", "trajectories", "ablate", "top=2", "-n", "20",
        "--with", made["other"], "--out", out, "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found) == ["breakdown", "trajectories", "ablate"]
    assert {result["seeds"] for result in found.values()} == {2}
    assert found["breakdown"]["top"] == 2
    names = {f"{name}.{end}" for name in found for end in ("json", "csv", "svg", "html")}
    assert {path.name for path in out.iterdir()} == names


def test_a_run_is_recorded_with_gates_where_they_are_wanted(
    regard: Command, made: dict[str, Path]
) -> None:
    done = regard(
        "inspect", made["aed"], "gates", "weights", "connectivity", "-n", "10",
        "convention=writes", "block=encoder.0.W_hh.update", "clip=0", "top=0.1", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["gates"]["open"]["decoder.0.update"] == "writes (1 − z)"
    assert found["weights"]["values"]["encoder.0.W_hh.update size"]["mean"] == 64
    assert found["connectivity"]["values"]["edges"]["mean"] == 6


def test_a_table_for_people(regard: Command, made: dict[str, Path]) -> None:
    done = regard("inspect", made["aed file"], "decompose", "variance", "least=5")
    assert done.returncode == 0, done.stderr
    assert "encoder" in done.stdout and "all words" in done.stdout


FAULTS: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "instrument": (("aed file", "breakdwn"), ["Did you mean 'breakdown'"]),
    "two instruments": (("aed file", "breakdwn", "pahts"), ["'breakdown'", "'paths'"]),
    "none": (("aed file",), ["Name an instrument"]),
    "setting": (("aed file", "breakdown", "tpo=3"), ["Did you mean 'top'"]),
    "value": (("aed file", "breakdown", "top=many"), ["top='many' does not fit"]),
    "all at once": (
        ("aed file", "pahts", "lean", "window=x", "wndow=1"),
        ["'paths'", "'x'", "wndow"],
    ),
    "too few": (("aed file", "breakdown", "top=0"), ["top='0' does not fit breakdown: it is 1"]),
    "flag": (("aed file", "breakdown", "--top", "0"), ["--top"]),
    "site": (("aed file", "breakdown", "site=atention"), ["Did you mean 'attention'"]),
    "head": (("aed file", "offset", "head=3"), ["heads 0 to 0"]),
    "word": (("aed file", "clusters", "word=twice"), ["not in the vocabulary"]),
    "least": (("aed file", "variance", "least=9999"), ["smaller least"]),
    "nowhere": (("nowhere", "breakdown"), ["There is no run or recording"]),
    "text": (("text", "breakdown"), ["not a whole recording"]),
    "folder": (("empty", "breakdown"), ["is not a run"]),
    "no attention": (("ved file", "breakdown"), ["no attention site"]),
    "no attention to change": (("ved", "ablate"), ["no attention to change"]),
    "a recording cannot run": (("aed file", "ablate"), ["Give the run's folder"]),
    "no weights": (("aed file", "weights"), ["Give the run's folder"]),
    "block": (("aed", "weights", "block=encoder.0.W_hh.updat"), ["Did you mean 'encoder.0.W_hh.u"]),
    "no gates": (("aed file", "gates"), ["--also gates"]),
    "share": (("aed", "connectivity", "top=3"), ["it is at most 1"]),
    "samples": (("aed", "ablate", "n=4"), ["write -n instead of n="]),
    "convention": (("aed file", "gates", "convention=torch"), ["'torch' does not fit gates"]),
    "another": (("aed file", "paths", "--with", "nowhere"), ["nowhere"]),
    "not a folder": (("aed file", "paths", "--out", "text"), ["is a file. Give --out a folder"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_inspect_tells_what_is_wrong(
    regard: Command, fault: str, made: dict[str, Path], tmp_path: Path
) -> None:
    words, parts = FAULTS[fault]
    done = regard("inspect", *(made.get(word, word) for word in words), cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr
    assert all(part in done.stderr for part in parts), done.stderr
    if fault != "flag":  # the parser's own messages have lines around them
        assert len(done.stderr.strip().splitlines()) == len(parts), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("nowhere",), "not a run"),
        (("aed", "--inputs", "teachr"), "Did you mean 'teacher'"),
        (("aed", "--checkpoint", "frist"), "no checkpoint"),
        (("aed", "--split", "tset"), "no split 'tset'"),
        (("aed", "-n", "0"), "-n"),
        (("aed", "--out", "."), "is a folder"),
    ],
)
def test_record_tells_what_is_wrong(
    regard: Command, words: tuple[str, ...], part: str, made: dict[str, Path], tmp_path: Path
) -> None:
    done = regard("record", *(made.get(word, word) for word in words), cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr
    assert part in done.stderr
    assert not list(made["aed"].glob("recording-*")), "nothing is left behind"


def test_recordings_of_one_run_do_not_overwrite_each_other(
    regard: Command, made: dict[str, Path]
) -> None:
    for words, name in (
        ((), "recording-5.safetensors"),
        (("--inputs", "teacher", "--gates"), "recording-5-teacher-gates.safetensors"),
        (("--split", "test", "--checkpoint", "0"), "recording-5-test-at-0.safetensors"),
        (("--seed", "3"), "recording-5-s3.safetensors"),
    ):
        done = regard("record", made["other"], "-n", "5", "--json", *words)
        file = Path(json.loads(done.stdout)["recording"])
        assert file == made["other"] / name and file.is_file()


def test_instruments_are_listed(regard: Command) -> None:
    rows = json.loads(regard("ls", "instruments", "--json").stdout)
    assert [row["name"] for row in rows] == sorted(INSTRUMENTS)
    assert all(row["what it measures"] for row in rows)
