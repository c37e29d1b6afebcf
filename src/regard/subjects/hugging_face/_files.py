"""A local folder of `transformers`, loaded without the network and without remote code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError, first_line


def load_folder(folder: Path) -> tuple[Any, Any]:
    """The model and the tokenizer in a folder; None where there is no tokenizer."""
    import transformers

    if not (folder / "config.json").is_file():
        raise RegardError(
            f"There is no config.json in {folder}. Name the folder of a saved model:"
            " model.save_pretrained(folder)."
        )
    config = _try(transformers.AutoConfig, folder)
    names = ("AutoModelForSeq2SeqLM", "AutoModelForSpeechSeq2Seq")
    kind = names[config.model_type in ("whisper", "speech_to_text")]
    model, told = _try(getattr(transformers, kind), folder, output_loading_info=True)
    refuse_random(folder, model, told["missing_keys"])
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except Exception:  # a folder need not have one; texts are refused then
        tokenizer = None
    if tokenizer is not None and not _has_files(folder, tokenizer):
        tokenizer = None  # made up from the configuration: it would drop every word of a text
    return model, tokenizer


def _has_files(folder: Path, tokenizer: Any) -> bool:
    """Whether a folder holds the words of a tokenizer that was loaded from it."""
    names = {"tokenizer.json", *getattr(tokenizer, "vocab_files_names", {}).values()}
    return any((folder / name).is_file() for name in names)


def _try(kind: Any, folder: Path, **more: Any) -> Any:
    try:
        return kind.from_pretrained(folder, local_files_only=True, trust_remote_code=False, **more)
    except Exception as error:  # whatever `transformers` raises, the user reads one sentence
        raise RegardError(
            f"{folder} does not hold an encoder-decoder that can be loaded ({first_line(error)})."
        ) from None


def refuse_random(folder: Path, model: Any, missing: Iterable[str]) -> None:
    """Refuse parameters that no file has filled: they are random, and others at each load."""
    state = dict(model.named_parameters(remove_duplicate=False))
    filled = {p.data_ptr() for name, p in state.items() if name not in {*missing}}
    lost = [n for n in missing if n in state and state[n].data_ptr() not in filled]
    if lost:
        raise RegardError(
            *(
                f"The files in {folder} have no '{name}', which the model needs."
                for name in lost[:10]
            )
        )


def compare_files(folder: Path, model: Any) -> dict[str, Any]:
    """Every tensor in the folder's files against the parameter that it became."""
    state = {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers())}
    prefix = f"{model.base_model_prefix}."
    skipped = [*(getattr(model, "_keys_to_ignore_on_load_unexpected", None) or ())]
    compared, faults = 0, []
    for name, value in read_tensors(folder):
        places = [name, f"{prefix}{name}", name.removeprefix(prefix)]
        found = next((state[place] for place in places if place in state), None)
        if found is None:
            found = next((p for p in state.values() if _equal(p, value)), None)
        if found is None and any(re.search(pattern, name) for pattern in skipped):
            continue
        if found is None:
            faults.append(f"'{name}' is in the file, but in no parameter of the loaded model.")
        elif bool(value.isnan().any()):
            faults.append(f"'{name}' has numbers in the file that are none (NaN).")
        elif not _equal(found, value):
            faults.append(f"'{name}' was loaded with other numbers than the file has.")
        compared += 1
    if faults:
        told = "The self-test failed: the loaded model is not the file's, see tied weights."
        raise RegardError(told, *faults[:10])
    return {"tensors equal to the file": compared}


def _equal(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    return bool(torch.equal(one.detach().cpu().to(other.dtype), other))


def read_tensors(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """All tensors of a folder's weights, one file at a time; nothing is run."""
    from safetensors import safe_open

    files = sorted(folder.glob("*.safetensors"))
    for path in files:
        with safe_open(path, framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118
                yield name, opened.get_tensor(name)
    if not files:
        from regard.subjects.formats.torch_files import read_checkpoint

        for path in sorted(folder.glob("pytorch_model*.bin")):
            yield from read_checkpoint(path).items()
