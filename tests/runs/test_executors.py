"""Where runs are trained, and how their files travel between machines that share no folder."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.runs import Run, RunConfig, assemble, execute, files, parcels, run_all
from regard.runs.checksums import note, read_sums
from regard.runs.files import BUSY, locked
from regard.runs.parcels import Sender, files_of, move_files, pack, receive

SMALL = {"hidden": 8, "batch": 4, "held_out": 10, "evaluate_every": 10, "checkpoint_every": 20}


def config(**settings: object) -> RunConfig:
    return assemble("reversal", "chapter36", 0, {**SMALL, "updates": 50, **settings})


class Cut(Exception):
    """Enough of it."""


def cut_at(last: int, folder: Path) -> None:
    def watch(update: int, *rest: object) -> None:
        if update == last:
            raise Cut

    with pytest.raises(Cut):
        execute(config(), folder, watch)


def test_an_unknown_place_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RegardError, match=r"no place to work 'rya'. Did you mean 'ray'"):
        run_all([config()], tmp_path, on="rya")
    monkeypatch.setenv("REGARD_ON", "nowhere")
    with pytest.raises(RegardError, match="no place to work 'nowhere'"):
        run_all([config()], tmp_path)
    assert run_all([config()], tmp_path, on="local")[0].done


def test_a_missing_package_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RegardError, match=r"pip install 'regard\[ray\]'"):
        run_all([config()], tmp_path, on="ray")


def test_a_run_that_moves_house_ends_in_the_same_bits(tmp_path: Path) -> None:
    """Cut on one node, gone on with on another, cut again, ended on a third."""
    ours, wanted = tmp_path / "ours" / config().name, config()
    for number, last in enumerate((25, 45, None)):
        node = tmp_path / f"node-{number}"
        receive(node / wanted.name, wanted, pack(ours))
        sender = Sender(node / wanted.name)
        if last is None:
            execute(wanted, node)
        else:
            cut_at(last, node)
        receive(ours, wanted, sender.find_new(last=last is None))
        assert sender.find_new(last=last is None) == [], "nothing is sent twice"
    alone, moved = execute(wanted, tmp_path / "alone"), Run.open(ours)
    assert moved.done and moved.summary["weights"] == alone.summary["weights"]
    assert moved.rows() == alone.rows()
    assert read_sums(ours).keys() == read_sums(alone.folder).keys()
    assert all(len(hashes) == 1 for hashes in read_sums(ours).values()), "the list is settled"
    assert moved.model() and not (ours / "state.safetensors").exists()


@pytest.mark.parametrize("name", ["../x", "checkpoints/../../x", "config.json", "/x", "LOCK"])
def test_a_node_cannot_write_elsewhere(name: str, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="which no run has"):
        receive(tmp_path / "run", config(), [(name, None, b"")])


def test_data_may_lie_elsewhere_and_the_run_is_the_same(tmp_path: Path) -> None:
    pairs = tmp_path / "here" / "pairs.tsv"
    pairs.parent.mkdir()
    pairs.write_text("".join(f"a b{i}\tx{i}\n" for i in range(40)))
    ours = assemble("parallel", "chapter36", 0, {"source": str(pairs)})
    assert files_of(ours) == [pairs]
    there = tmp_path / "there" / "pairs.tsv"
    there.parent.mkdir()
    there.write_bytes(pairs.read_bytes())
    moved = RunConfig.from_json(move_files(ours, {pairs: there, pairs.parent: there.parent}))
    assert files_of(moved) == [there] and moved.name == ours.name


def test_a_folder_is_waited_for_while_another_is_dying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as other:
        other.enter_context(locked(tmp_path))
        monkeypatch.setattr(files.time, "sleep", lambda seconds: other.close())
        with locked(tmp_path, 60), pytest.raises(RegardError, match=BUSY):
            locked(tmp_path).__enter__()


def test_a_run_that_arrived_whole_has_one_hash_of_each_file(tmp_path: Path) -> None:
    metrics = tmp_path / parcels.METRICS
    metrics.write_text("{}\n")
    for digest in ("0" * 64, "1" * 64):
        note(tmp_path, metrics, digest)
    assert len(read_sums(tmp_path)[parcels.METRICS]) > 1
    parcels._finish(tmp_path, b"{}")
    assert all(len(hashes) == 1 for hashes in read_sums(tmp_path).values())
    assert (tmp_path / parcels.DONE).read_bytes() == b"{}"
