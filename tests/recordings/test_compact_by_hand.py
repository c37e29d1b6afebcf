"""The compact view of a recording with other people's word numbers, worked out on paper.

Nine words. Padding is 8, the decoder's start is 0 and the end 7; 6 is special and means nothing.
Of the source 3 and 5 occur, of the target 2, 4 and 5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regard.recordings import Recording
from regard.recordings.compact import compact, number_seen, renumber
from regard.recordings.recording import Metadata
from regard.recordings.storage import InMemory
from regard.tasks.vocabulary import EOS, PAD, SOS

NAMES = tuple(f"w{n}" for n in range(9))
SAID: dict[str, Any] = {"pad": 8, "start": 0, "end": 7, "special": [6], "pieces": "▁"}
READOUT = np.arange(18, dtype=np.float32).reshape(9, 2)


def make(conventions: Any = None, **more: Any) -> Recording:
    arrays = {
        "encoder.states": np.arange(12, dtype=np.float32).reshape(2, 3, 2),
        "encoder.words": np.array([[5, 3, 7], [3, 7, 8]]),
        "encoder.mask": np.array([[1, 1, 1], [1, 1, 0]], bool),
        "decoder.words": np.array([[0, 4, 2], [0, 5, 8]]),
        "decoder.mask": np.array([[1, 1, 1], [1, 1, 0]], bool),
        "targets": np.array([[4, 2, 7], [5, 7, 8]]),
        "predictions": np.array([[4, 0, 7], [5, 5, 8]]),
        "readout": READOUT, "readout.bias": READOUT[:, 0] / 2, **more,
    }  # fmt: skip
    both = {"encoder": SAID, "decoder": SAID} if conventions is None else conventions
    meta = Metadata(NAMES, NAMES, readout={"state": (0, 2)}, conventions=both)
    return Recording(InMemory(arrays), meta)


@pytest.fixture
def view() -> Recording:
    found = compact(make())
    assert found is not None
    return found


def test_words_by_what_was_seen(view: Recording) -> None:
    meta = view.metadata
    assert meta.source_words == ("<PAD>", "<SOS>", "w7", "w3", "w5")
    assert meta.target_words == ("<PAD>", "<SOS>", "w7", "w0", "w2", "w4", "w5")
    assert meta.ends == (True, True) and meta.compact
    assert meta.further == ("w0", "w6", "w8"), "what is special there means nothing here"
    assert meta.conventions == {"encoder": {"pieces": "▁"}, "decoder": {"pieces": "▁"}}


def test_numbers_of_every_array(view: Recording) -> None:
    """The start is one where it is fed first; said later, 0 is a word like any other."""
    assert view["encoder.words"].tolist() == [[4, 3, EOS], [3, EOS, PAD]]
    assert view["decoder.words"].tolist() == [[SOS, 5, 4], [SOS, 6, PAD]]
    assert view["targets"].tolist() == [[5, 4, EOS], [6, EOS, PAD]]
    assert view["predictions"].tolist() == [[5, 3, EOS], [6, 6, PAD]]
    assert view["encoder.states"].tolist() == make()["encoder.states"].tolist()
    storage = view.storage
    assert storage.read("targets", 1, 2).tolist() == [[6, EOS, PAD]]
    assert storage.read("targets", 1).tolist() == [[6, EOS, PAD]]
    given = np.array([[5, 8]])
    there = np.array([[True, False]])
    assert renumber(view, "encoder.words", given, there).tolist() == [[4, PAD]]
    assert renumber(make(), "encoder.words", given, there) is given


def test_rows_of_the_readout_are_those_of_our_words(view: Recording) -> None:
    rows = [None, None, 7, 0, 2, 4, 5]
    wanted = [[0.0, 0.0] if row is None else READOUT[row].tolist() for row in rows]
    assert view["readout"].tolist() == wanted and view.shape("readout") == (7, 2)
    assert view["readout.bias"].tolist() == [row[0] / 2 for row in wanted]
    assert view.storage.read("readout", 2, 4).tolist() == wanted[2:4]


def test_a_readout_of_some_words() -> None:
    """Its rows are of the words 2, 4 and 7 alone."""
    some = {
        "readout": READOUT[:3],
        "readout.bias": READOUT[:3, 0],
        "readout.words": np.array([2, 4, 7]),
    }
    found = compact(make(**some))
    assert found is not None and "readout.words" not in found
    zero = [0.0, 0.0]
    assert found["readout"].tolist() == [
        zero, zero, READOUT[2].tolist(), zero, READOUT[0].tolist(), READOUT[1].tolist(), zero,
    ]  # fmt: skip
    short = compact(make(readout=READOUT[:5], **{"readout.bias": READOUT[:5, 0]}))
    assert short is not None and short["readout"][6].tolist() == zero  # word 5 has no row


def test_a_side_without_an_end() -> None:
    found = compact(make({"encoder": {**SAID, "end": None}, "decoder": SAID}))
    assert found is not None and found.metadata.ends == (False, True)
    assert found.metadata.source_words == ("<PAD>", "<SOS>", "w3", "w5", "w7")
    assert found["encoder.words"].tolist() == [[3, 2, 4], [2, 4, PAD]]


def test_regards_own_recordings_need_no_view() -> None:
    assert compact(make({})) is None


def test_words_that_a_decomposition_never_saw_are_padding() -> None:
    recording = make(predictions=np.array([[4, 2, 7], [5, 5, 8]]))
    given = np.array([[0, 0, 4, 3, 7], [2, 5, 6, 8, 1]])
    fed = number_seen(recording, "decoder", given)
    assert fed.tolist() == [[SOS, 3, 5, PAD, EOS], [4, 6, PAD, PAD, PAD]], "the start was fed"
    read = number_seen(recording, "encoder", given)
    assert read.tolist() == [[PAD, PAD, PAD, 3, EOS], [PAD, 4, PAD, PAD, PAD]]
    assert number_seen(recording, "decoder", np.array([[1, 4]])).tolist() == [[PAD, 5]]
    plain = make(conventions={})
    assert number_seen(plain, "encoder", given) is given
