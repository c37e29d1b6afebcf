"""Read a published spelling-to-phoneme model from the folder that a user names.

The folder holds `weights.npz` (named arrays) and `vocab.json` (`graphemes` and `phonemes`, each a
list of words in the order of their numbers). Which model it is shows in the arrays' names.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.models.published.layouts import LAYOUTS, Layout, Side
from regard.models.published.numbering import Numbering
from regard.models.published.speller import Published

Array = NDArray[Any]
SHAPE_OF_WORDS = 'It should be {"graphemes": […], "phonemes": […]}, words by their numbers.'


def load_published(folder: str | Path) -> Published:
    """The published model in a folder, as a model of Regard's, in evaluation mode.

    `g2p_en` 1.0.1 (attention, see `AttentiveSpeller`) and 2.1.0 (a fixed vector, see
    `FixedVectorSpeller`) are recognised by the names in `weights.npz`.

    >>> model = regard.load_published("pretrained/g2p_en_1.0.1_bahdanau")     # doctest: +SKIP
    >>> model.spell(["attention"])                                            # doctest: +SKIP
    [['AE0', 'T', 'EH1', 'N', 'SH', 'AH0', 'N']]
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise RegardError(
            f"There is no folder {folder}. Name the one that holds weights.npz and vocab.json."
        )
    numbers, vocab = folder / "weights.npz", folder / "vocab.json"
    arrays = _arrays(numbers)
    layout = _layout(arrays, numbers)
    graphemes, phonemes = _words(vocab)
    sides = (
        _numbering(graphemes, layout.letters, "graphemes", vocab),
        _numbering(phonemes, layout.phonemes, "phonemes", vocab),
    )
    _fits(arrays, layout, len(graphemes), len(phonemes), numbers)
    weights = {name: torch.from_numpy(a.astype(np.float32)) for name, a in arrays.items()}
    return layout.model(weights, *sides).eval()


def _arrays(path: Path) -> dict[str, Array]:
    """All arrays of an npz file. Nothing in it is ever run: pickled objects are refused."""
    if not path.is_file():
        raise RegardError(f"There is no {path.name} in {path.parent}. The model's arrays go there.")
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, EOFError, ValueError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise RegardError(
            f"{path} is not a whole npz file of plain arrays ({error}). Fetch it again, or save"
            " the model's arrays by name with numpy.savez."
        ) from None
    strange = [name for name, array in arrays.items() if array.dtype.kind != "f"]
    if strange:
        raise RegardError(f"{path} holds arrays that are not real numbers: {_list(strange)}.")
    return arrays


def _layout(names: Iterable[str], path: Path) -> Layout:
    """The model whose names these are."""
    given = set(names)
    layout = max(LAYOUTS, key=lambda layout: len(given & layout.names))
    missing, strange = sorted(layout.names - given), sorted(given - layout.names)
    if not given & layout.names:
        known = " and ".join(layout.name for layout in LAYOUTS)
        raise RegardError(
            f"{path} is none of the published models that Regard knows ({known}): it holds"
            f" {_list(strange)}, which they do not have."
        )
    faults = []
    if missing:
        faults.append(f"{path} looks like {layout.name}, but lacks {_list(missing)}.")
    if strange:
        faults.append(f"{path} looks like {layout.name}, but also holds {_list(strange)}.")
    if faults:
        raise RegardError(*faults)
    return layout


def _words(path: Path) -> tuple[list[str], list[str]]:
    if not path.is_file():
        raise RegardError(f"There is no {path.name} in {path.parent}. {SHAPE_OF_WORDS}")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        words = data["graphemes"], data["phonemes"]
    except (ValueError, KeyError, TypeError) as error:
        raise RegardError(f"{path} cannot be read ({error!r}). {SHAPE_OF_WORDS}") from None
    for side in words:
        if not isinstance(side, list) or not all(isinstance(word, str) for word in side):
            raise RegardError(f"{path} holds something that is not a word. {SHAPE_OF_WORDS}")
    return words


def _numbering(words: Sequence[str], side: Side, name: str, path: Path) -> Numbering:
    missing = [word for word in side.special.values() if word not in words]
    if missing:
        raise RegardError(f"{path} does not fit the weights: its {name} lack {_list(missing)}.")
    twice = sorted({word for word in words if words.count(word) > 1})
    if twice:
        raise RegardError(f"{path} has {_list(twice)} more than once among its {name}.")
    return Numbering(words, side.special, side.renamed)


def _fits(
    arrays: dict[str, Array], layout: Layout, letters: int, phonemes: int, path: Path
) -> None:
    """Every array has the shape that the sizes of the others give it."""
    sizes = {size: arrays[name].shape[-1:] for size, name in layout.sizes.items()}
    wanted = layout.shapes(
        **{size: shape[0] if shape else 0 for size, shape in sizes.items()},
        letters=letters,
        phonemes=phonemes,
    )
    faults = [
        f"{path}: '{name}' has the shape {arrays[name].shape}, but beside the other arrays and"
        f" vocab.json it should have {shape}."
        for name, shape in wanted.items()
        if arrays[name].shape != shape
    ]
    if faults:
        raise RegardError(*faults)


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "nothing"
