"""Recordings in shards: the same samples, the same numbers, and what is wrong is told by name."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import brute
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import regard
from regard import RegardError, instruments
from regard.instruments import INSTRUMENTS, Recordings
from regard.plugins import RegardWarning
from regard.recordings import Recording, gather_shards, load_recording
from regard.recordings.adding import Summed, cut_parts, find_shards
from regard.recordings.manifest import MANIFEST
from regard.recordings.views import draw_places, sample_rows

SAMPLES = 60
QUICK = settings(
    deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SUMS = [name for name in INSTRUMENTS if INSTRUMENTS[name].sums]


def made(seed: int = 1, words: tuple[int, int] = (5, 6)) -> dict[str, brute.Array]:
    """All that an instrument may read."""
    arrays = brute.scored(brute.arrays(seed, SAMPLES, words=words), seed)
    return arrays | {"readout": np.concatenate([arrays["readout"]] * 2, axis=1)}


def write(arrays: dict[str, brute.Array], out: Path, words: tuple[int, int] = (5, 6)) -> Recording:
    columns = {"state": (0, 4), "context": (4, 8)}
    return brute.recording(arrays, words, out, readout=columns)


def trim(arrays: dict[str, brute.Array], start: int, stop: int) -> dict[str, brute.Array]:
    """Some samples, without padding that none of them needs."""
    source, target = (
        int(arrays[f"{side}.mask"][start:stop].sum(axis=1).max()) for side in ("encoder", "decoder")
    )
    found = {}
    for name, values in arrays.items():
        if name == "readout":
            found[name] = values
        elif name in ("lexical", "proxy", "saliency"):
            found[name] = values[start:stop, :target, :source]
        else:
            ours = name.startswith("encoder") or name in ("keys", "values")
            found[name] = values[start:stop, : source if ours else target]
    return found


def shard(
    arrays: dict[str, brute.Array], cuts: Sequence[int], folder: Path, **more: Any
) -> Recording:
    ends = [0, *sorted(set(cuts) - {0, SAMPLES}), SAMPLES]
    for number, (start, stop) in enumerate(pairwise(ends)):
        write(trim(arrays, start, stop), folder / f"{number:03d}.safetensors", **more)
    return gather_shards(folder)


def close(ours: Any, theirs: Any) -> None:
    """Plain data, equal up to rounding."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        for key in ours:
            close(ours[key], theirs[key])
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            close(one, other)
    elif isinstance(ours, float):
        assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-12)
    else:
        assert ours == theirs


@QUICK
@given(cuts=st.lists(st.integers(1, SAMPLES - 1), max_size=7))
def test_shards_hold_the_samples_of_one_file(
    cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, arrays = tmp_path_factory.mktemp("cut"), made()
    one = write(arrays, folder / "one.safetensors")
    many = shard(arrays, cuts, folder / "many")
    assert many.names() == one.names() and len(many) == SAMPLES
    for name in one.names():
        assert many.shape(name) == one.shape(name)
        if not name.endswith((".scores", ".weights")):  # these are worked out, shard by shard
            np.testing.assert_array_equal(many[name], one[name], err_msg=name)
        np.testing.assert_allclose(many[name], one[name], rtol=1e-5, atol=1e-6)
    for ours, theirs in zip(many.chunks(rows=7), one.chunks(rows=7), strict=True):
        np.testing.assert_array_equal(ours["encoder.states"], theirs["encoder.states"])
    np.testing.assert_array_equal(many.sample(41, ["targets"])["targets"], one["targets"][41])


@QUICK
@given(
    cuts=st.lists(st.integers(1, SAMPLES - 1), max_size=7),
    rows=st.sampled_from([4, 13, 1000]),
    words=st.sampled_from([(5, 6), (80, 300)]),
)
def test_any_split_gives_the_same_components(
    cuts: list[int], rows: int, words: tuple[int, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Against one file, and against loops that share no code with either."""
    folder, arrays = tmp_path_factory.mktemp("cut"), made(2, words)
    one = regard.decompose(write(arrays, folder / "one.safetensors", words), rows)
    many = regard.decompose(shard(arrays, cuts, folder / "many", words=words), rows)
    for ours, theirs in ((many.encoder, one.encoder), (many.decoding, one.decoding)):
        np.testing.assert_array_equal(ours.counts, theirs.counts)
        np.testing.assert_allclose(ours.temporal, theirs.temporal, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(ours.input, theirs.input, rtol=1e-12, atol=1e-13)
    wanted = brute.of(arrays, "encoder", words[0])
    np.testing.assert_allclose(many.encoder.temporal, wanted.mu, atol=2e-5)
    np.testing.assert_allclose(many.encoder.input, wanted.chi, atol=2e-5)


@pytest.mark.parametrize("name", SUMS)
def test_sums_over_shards_are_those_over_one_file(name: str, tmp_path: Path) -> None:
    arrays = made(3)
    many = replace(shard(arrays, [5, 17, 30, 31, 44], tmp_path / "many"), rows=8)
    # Scores and weights of arrays are worked out shard by shard: here the same for both.
    one = write({name: many[name] for name in many.names()}, tmp_path / "one.safetensors")
    assert one.metadata.sites == many.metadata.sites
    found = many.inspect(name).to_json()
    close(found, replace(one, rows=8).inspect(name).to_json())
    before = sorted((tmp_path / "many" / "sums").iterdir())
    fresh = replace(load_recording(tmp_path / "many"), rows=8)
    assert fresh.inspect(name).to_json() == found  # from what was kept: the same bits
    assert sorted((tmp_path / "many" / "sums").iterdir()) == before


def test_every_instrument_says_whether_it_is_a_sum() -> None:
    for name in INSTRUMENTS:
        one = INSTRUMENTS[name]
        if isinstance(one.takes, Recordings):
            assert bool(one.sums) != bool(one.not_sum), name
            assert not one.not_sum or one.not_sum.endswith(".")


def test_several_processes_give_the_same_bits(tmp_path: Path) -> None:
    arrays = made(4)
    cuts = [9, 20, 33, 41]
    here = replace(shard(arrays, cuts, tmp_path / "here"), rows=5, jobs=1)
    there = replace(shard(arrays, cuts, tmp_path / "there"), rows=5, jobs=3)
    shards = find_shards(there)
    assert shards is not None and len(cut_parts(there, shards)) == 5
    ours, theirs = (one.inspect("breakdown", per_sample=True).first for one in (here, there))
    for what in ("absolute", "signed", "by_step", "by_head", "by_sample"):
        np.testing.assert_array_equal(getattr(ours, what), getattr(theirs, what))
    names = [sorted(p.name for p in (tmp_path / w / "sums").iterdir()) for w in ("here", "there")]
    assert names[0] == names[1] and names[0]


def test_words_numbered_as_elsewhere(tmp_path: Path) -> None:
    """The view with words by what was seen follows from all shards, in every process."""
    arrays = {n: a for n, a in made(11).items() if n != "readout"}
    specials = {"pad": 0, "start": 1, "end": 2}
    ends = [0, 25, 40, SAMPLES]
    for number, (start, stop) in enumerate(pairwise(ends)):
        some = {name: values[start:stop] for name, values in arrays.items()}
        out = tmp_path / "many" / f"{number}.safetensors"
        brute.recording(some, (5, 6), out, specials=specials)
    many = gather_shards(tmp_path / "many")
    whole = {name: many[name] for name in many.names()}
    one = brute.recording(whole, (5, 6), tmp_path / "one.safetensors", specials=specials)
    assert one.compact is not one
    wanted = replace(one, rows=10).inspect("breakdown").to_json()
    close(replace(many, rows=10, jobs=2).inspect("breakdown").to_json(), wanted)


def test_a_damaged_partial_result_is_made_again(tmp_path: Path) -> None:
    many = replace(shard(made(5), [20, 40], tmp_path), rows=10)
    found = many.inspect("sizes").to_json()
    for path in (tmp_path / "sums").iterdir():
        path.write_bytes(path.read_bytes()[:-3] + b"abc")
    assert replace(load_recording(tmp_path), rows=10).inspect("sizes").to_json() == found


def test_what_is_no_sum_says_so_and_takes_a_sample(tmp_path: Path) -> None:
    many = shard(made(6), [20, 40], tmp_path)
    with pytest.warns(RegardWarning, match="clusters is not a sum over samples.*sample=N"):
        whole = many.inspect("clusters", least=2)
    assert "sample" not in whole.to_json()
    some = many.inspect("clusters", least=2, sample=30)
    assert some.to_json()["sample"] == {"rows": 30, "of": SAMPLES}
    assert some.to_json() == many.inspect("clusters", least=2, sample="30").to_json()
    taken = sample_rows(many, 30)
    np.testing.assert_array_equal(taken["targets"], many["targets"][draw_places(SAMPLES, 30)])


def test_a_damaged_shard_is_refused_by_name(tmp_path: Path) -> None:
    many = shard(made(7), [20, 40], tmp_path)
    path = tmp_path / "001.safetensors"
    content = bytearray(path.read_bytes())
    content[8 + int.from_bytes(content[:8], "little") + 5] ^= 1  # in the first array
    path.write_bytes(bytes(content))
    with pytest.raises(RegardError, match=r"001.safetensors is damaged"):
        for _ in load_recording(tmp_path).chunks():
            pass
    write(trim(made(8), 20, 40), path)  # whole, but of something else
    with pytest.raises(RegardError, match=r"001.safetensors is damaged or another file"):
        load_recording(tmp_path)["encoder.states"]
    path.write_bytes(bytes(content[:-100]))
    with pytest.raises(RegardError, match=r"001.safetensors is damaged: it has not the"):
        load_recording(tmp_path)
    path.unlink()
    with pytest.raises(RegardError, match=r"001.safetensors is missing: samples 20 to 39"):
        regard.inspect(tmp_path, "sizes")
    assert many.shape("targets")[0] == SAMPLES


@pytest.mark.parametrize("change", ["rows", "samples", "sha256", "of", "text"])
def test_an_edited_manifest_is_noticed(change: str, tmp_path: Path) -> None:
    shard(made(9), [20], tmp_path)
    path = tmp_path / MANIFEST
    said = json.loads(path.read_text())
    if change == "rows":
        said["shards"][0]["rows"] -= 1
    elif change == "of":
        said["of"] = {"run": "another"}
    elif change == "text":
        said = [said]
    else:
        said[change] = said[change] - 1 if change == "samples" else "0" * 64
    path.write_text(json.dumps(said))
    with pytest.raises(RegardError, match=r"manifest.json is no manifest"):
        load_recording(tmp_path)


def test_shards_of_another_model_are_refused(tmp_path: Path) -> None:
    write(made(1), tmp_path / "0.safetensors")
    write(made(1, (7, 6)), tmp_path / "1.safetensors", (7, 6))
    with pytest.raises(RegardError, match=r"1.safetensors has other words"):
        gather_shards(tmp_path)
    with pytest.raises(RegardError, match="no recordings"):
        gather_shards(tmp_path / "nothing")


def test_rows_of_the_readout_are_gathered_from_all_shards(tmp_path: Path) -> None:
    """Each shard has the rows of the words that it saw; together they have each word's once."""
    arrays = made(3)
    rows = arrays.pop("readout")
    few = [[2, 5], [0, 3, 5], [1]]
    for number, words in enumerate(few):
        some = {name: values[20 * number : 20 * number + 20] for name, values in arrays.items()}
        some |= {"readout": rows[words], "readout.words": np.array(words)}
        write(some, tmp_path / f"{number}.safetensors")
    many = gather_shards(tmp_path)
    assert many["readout.words"].tolist() == [0, 1, 2, 3, 5]
    np.testing.assert_array_equal(many["readout"], rows[[0, 1, 2, 3, 5]])
    assert many.shape("readout") == (5, 8)


def test_passes_that_look_at_the_whole_say_so() -> None:
    for module in pkgutil.walk_packages(instruments.__path__, "regard.instruments."):
        importlib.import_module(module.name)
    # Plugins of other tests may have left some of their own.
    every = Summed.__subclasses__()
    kinds = [kind for kind in every if kind.__module__.startswith("regard.")]
    assert len(kinds) >= 18
    for kind in kinds:
        asked = re.findall(r"whole\.(\w+)", inspect.getsource(kind))
        if "decomposition" in asked:
            assert kind.needs_means, f"{kind.__name__} would be kept though its means changed"
