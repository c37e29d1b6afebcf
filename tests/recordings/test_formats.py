"""Files of format 1, written before sites had sides and every array of one a head axis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from regard import Recording, RegardError, load_recording
from regard.instruments import INSTRUMENTS
from regard.instruments.sources import Recordings
from regard.instruments.words import Alignment
from regard.models.layers.score_functions import ACTIVATIONS
from regard.recordings import Site
from regard.recordings.recording import FORMAT
from regard.recordings.storage import File
from regard.recordings.writer import Sizes, write_recording

DATA = Path(__file__).parent / "data"
SITES = {
    "aed": {"attention": Site(plain=True)},
    "baan": {"attention": Site(score="additive-relu", lag=1)},
    "transformer": {
        "encoder.0.self": Site(query_side="encoder", heads=2, projected=True),
        "decoder.0.self": Site(key_side="decoder", heads=2, projected=True),
        "decoder.0.cross": Site(heads=2, projected=True),
    },
}


def path_of(name: str) -> Path:
    return DATA / f"format1-{name}.safetensors"


@pytest.fixture(params=SITES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def recording(name: str) -> Recording:
    return load_recording(path_of(name))


def test_the_arrays_are_those_of_the_file(name: str, recording: Recording) -> None:
    given = load_file(path_of(name))
    assert set(recording.names()) == set(given)
    for array, wanted in given.items():
        found = recording[array]
        assert found.shape == recording.shape(array) and found.ndim == len(recording.axes(array))
        np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)
    for chunk in recording.chunks(rows=3):
        assert all(a.ndim == len(recording.axes(n)) for n, a in chunk.items())
    one = recording.sample(1, ["weights", "encoder.words"])
    np.testing.assert_array_equal(one[f"{recording.site()}.weights"], recording["weights"][1])


def test_the_head_axis_is_there(name: str, recording: Recording) -> None:
    for site, known in SITES[name].items():
        for part in ("queries", "keys", "scores", "weights"):
            axes = recording.axes(f"{site}.{part}")
            assert axes[:2] == ("sample", "head")
            assert recording.shape(f"{site}.{part}")[1] == known.heads


def test_sites_know_what_they_are(name: str, recording: Recording) -> None:
    assert recording.metadata.sites == SITES[name]


def test_layers_stand_in_the_names() -> None:
    old = {"scorer": "dot", "heads": 4, "asks": "decoder", "answers": "decoder"}
    assert Site.from_format_1("decoder.3.self", old) == Site(key_side="decoder", layer=3, heads=4)
    assert Site.from_format_1("attention", {}) == Site()


def test_scores_and_weights_follow(name: str, recording: Recording) -> None:
    for site, known in recording.metadata.sites.items():
        queries, keys = recording[f"{site}.queries"], recording[f"{site}.keys"]
        asking, asked = (recording[f"{side}.mask"] for side in (known.query_side, known.key_side))
        mask = np.broadcast_to(
            asking[:, None, :, None] & asked[:, None, None, :], recording.shape(f"{site}.scores")
        )
        if known.score == "dot":
            wanted = queries @ keys.swapaxes(2, 3)
        else:
            sums = queries[:, :, :, None] + keys[:, :, None]
            vector = recording[f"{site}.vector"]
            wanted = np.einsum("bhtsf,hf->bhts", ACTIVATIONS[known.score](sums), vector)
        scores = recording[f"{site}.scores"]
        # A score may have a constant on top, which no softmax sees.
        shift = (scores - wanted)[mask]
        np.testing.assert_allclose(shift, shift.mean(), atol=1e-5)
        assert known.score != "dot" or abs(shift.mean()) < 1e-6
        allowed = mask & (np.tri(mask.shape[2], dtype=bool) if known.causal else True)
        raised = np.where(allowed, np.exp(scores), 0)
        weights = raised / np.maximum(raised.sum(axis=3, keepdims=True), 1e-30)
        np.testing.assert_allclose(recording[f"{site}.weights"], weights, atol=1e-6)


SETTINGS: dict[str, dict[str, Any]] = {
    "clusters": {"least": 1}, "variance": {"least": 2}, "dictionary": {"least": 1},
}  # fmt: skip
# What these files do not hold, and a score that is no product.
REFUSED = {
    "lexical_probe": "no lexical", "optimal_attention": "no values", "proxy_probe": "no proxy",
    "saliency": "no saliency", "gates": "no gates", "pull": "not a product",
    "dictionary": "a learned map",
}  # fmt: skip
CAN = {
    ("aed", "dictionary"),
    ("baan", "dictionary"),
    ("aed", "gates"),
    ("aed", "pull"),
    ("transformer", "pull"),
}
READERS = [name for name in INSTRUMENTS if isinstance(INSTRUMENTS[name].takes, Recordings)]


@pytest.mark.parametrize("instrument", READERS)
def test_instruments_read_them(name: str, recording: Recording, instrument: str) -> None:
    made, settings = INSTRUMENTS[instrument], dict(SETTINGS.get(instrument, {}))
    if instrument in REFUSED and (name, instrument) not in CAN:
        with pytest.raises(RegardError, match=REFUSED[instrument]):
            made(recording)
        return
    if instrument == "aer" and "alignment" not in recording:
        settings["gold"] = [Alignment.of([(0, 0)])] * len(recording)
    compares = isinstance(made.takes, Recordings) and made.takes.compares
    found = made([recording, recording] if compares else recording, **settings).estimates()
    assert found and all(np.isfinite(value.mean) for value in found.values())


def test_written_anew_they_are_of_format_2(name: str, recording: Recording, tmp_path: Path) -> None:
    file = tmp_path / "new.safetensors"
    fixed = {n: recording[n] for n in recording.names() if recording.axes(n)[0] != "sample"}
    sizes = Sizes(*recording.shape("encoder.words"), recording.shape("decoder.words")[1])
    write_recording(recording.chunks(rows=2), fixed, sizes, recording.metadata, file)
    again = load_recording(file)
    assert json.loads(File(file).metadata["regard"])["format"] == FORMAT == 2
    assert again.metadata == recording.metadata and set(again.names()) == set(recording.names())
    for array in again.names():
        assert again[array].dtype == recording[array].dtype
        np.testing.assert_array_equal(again[array], recording[array])
    assert File(file).shape(f"{again.site()}.weights") == again.shape("weights")


@pytest.mark.parametrize("version", [0, 3, "1", None])
def test_other_formats_are_refused(version: Any, tmp_path: Path) -> None:
    data = json.loads(File(path_of("aed")).metadata["regard"])
    path = tmp_path / "other.safetensors"
    save_file(load_file(path_of("aed")), path, {"regard": json.dumps({**data, "format": version})})
    with pytest.raises(RegardError, match=r"other\.safetensors .*another version.*Record again"):
        load_recording(path)
