"""`regard.hugging_face`: encoder-decoders of `transformers` as subjects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError, first_line, kind_of
from regard.subjects.hugging_face._files import compare_files, load_folder
from regard.subjects.hugging_face._model import HuggingFaceModel
from regard.subjects.hugging_face._parity import SelfTest
from regard.subjects.hugging_face._tokens import Tokens
from regard.subjects.subject import LIMIT, Pair, Subject, end_targets
from regard.tasks.batch import Batch, pad
from regard.training.evaluation import evaluating, without_dropout

AT_ONCE = 2**24  # logits that a piece of sentences may have
ROWS = 64  # sentences in a piece at most
USUAL = 20  # the `max_length` of `transformers` where nobody has set one


class HuggingFaceSubject(Subject):
    """A model of `transformers`, its tokenizer, and the report of the self-test."""

    model: HuggingFaceModel

    def __init__(self, model: HuggingFaceModel, tokens: Tokens, origin: dict[str, Any]):
        super().__init__(model, tokens.lexicons(), origin)
        self.tokens = tokens
        settings = getattr(model.net, "generation_config", None)
        self.forced_first = getattr(settings, "forced_bos_token_id", None)

    def read(self, pairs: Sequence[Pair]) -> list[Batch]:
        """Texts by the tokenizer; where there is no target, the model's own output is taken."""
        sources = [self.tokens.read_source(source) for source, _ in pairs]
        said = [None if target is None else self.tokens.read_target(target) for _, target in pairs]
        words = len(self.lexicons["decoder"])
        longest = max((len(t[0]) for t in said if t), default=LIMIT)
        rows = max(1, min(ROWS, AT_ONCE // (words * longest)))
        places = range(0, len(pairs), rows)
        return [self._batch(sources[p : p + rows], said[p : p + rows]) for p in places]

    def _batch(self, sources: Sequence[Any], said: Sequence[Any]) -> Batch:
        if self.tokens.speech:
            source = torch.stack([*sources])
            lengths = torch.full((len(source),), source.shape[1])
        else:
            source, lengths = (torch.from_numpy(x) for x in pad(sources))
        if all(one is None for one in said):
            empty = torch.zeros(len(said), 0, dtype=torch.long)
            return self.generate(Batch(source, lengths, empty, empty.sum(1)))
        if any(one is None for one in said):
            raise RegardError("Give a target with every source, or with none.")
        (target, sizes), (fed, _) = (pad([one[part] for one in said]) for part in (0, 1))
        parts = (torch.from_numpy(x) for x in (target, sizes, fed))
        target_, sizes_, fed_ = parts
        return Batch(source, lengths, target_, sizes_, None, fed_)

    def generate(self, batch: Batch, limit: int = LIMIT) -> Batch:
        """The model's own output by its own settings; of beams, the chosen hypothesis."""
        net = self.model.net
        device = next(net.parameters()).device
        given: dict[str, Tensor] = {"attention_mask": batch.source_mask.long().to(device)}
        given[net.main_input_name] = batch.source.to(device)
        if self.tokens.speech:
            given = {"input_features": self.model.unfold(batch.source.to(device))}
        said = net.generation_config
        own = said.max_new_tokens or (said.max_length if said.max_length != USUAL else None)
        longest: dict[str, int] = (
            {} if own else {"max_new_tokens": min(limit, self.tokens.limit("target") - 1)}
        )
        with evaluating(self.model):
            try:
                out = net.generate(**given, **longest).cpu()
            except Exception as error:  # whatever it raises, the user reads one sentence
                raise RegardError(
                    f"{type(net).__name__} could not put out words of its own"
                    f" ({first_line(error)}). Give targets."
                ) from None
        return end_targets(batch, out[:, :-1], out[:, 1:], self.tokens.end)


def hugging_face(model_or_folder: Any, tokenizer: Any = None) -> HuggingFaceSubject:
    """A model of `transformers` as a subject, proved equal to itself before it is given back.

    Marian, BART, mBART, M2M100 and NLLB, Pegasus, Blenderbot, T5, mT5, UMT5, Whisper, and what
    ProphetNet and LED allow; in memory, or in a local folder. Never from the network, never with
    remote code. Without a tokenizer, sentences are lists of word numbers.

    >>> subject = regard.hugging_face("opus-mt-de-en")                     # doctest: +SKIP
    >>> pairs = [("Ein Hund.", "A dog.")]                                  # doctest: +SKIP
    >>> rec = regard.record(subject, pairs=pairs, sites="cross")           # doctest: +SKIP
    """
    folder = Path(model_or_folder) if isinstance(model_or_folder, (str, Path)) else None
    _require_transformers()
    net, found = (model_or_folder, None) if folder is None else load_folder(folder)
    if not getattr(getattr(net, "config", None), "is_encoder_decoder", False):
        raise RegardError(
            f"{kind_of(net)} is no encoder-decoder of `transformers`. Give a model for"
            " conditional generation, or the folder of one."
        )
    if not hasattr(net, "get_output_embeddings") or net.get_output_embeddings() is None:
        raise RegardError(
            f"{type(net).__name__} has no output layer. Take the model for conditional generation."
        )
    model, tokens = HuggingFaceModel(net), Tokens(net, tokenizer or found)
    origin = {
        "adapter": "hugging_face", "model": type(net).__name__, "family": net.config.model_type,
        "folder": None if folder is None else folder.name,
    }  # fmt: skip
    subject = HuggingFaceSubject(model, tokens, origin)
    avoid = subject.lexicons["decoder"].unspoken | subject.lexicons["encoder"].unspoken
    report = {} if folder is None else compare_files(folder, net)
    with without_dropout(model):
        try:
            subject.parity = {**report, **SelfTest(model, tokens, avoid).run()}
        except RegardError:
            raise
        except Exception as error:  # whatever it raises, the user reads one sentence
            raise RegardError(
                f"The self-test failed: {type(net).__name__} could not make a pass"
                f" ({first_line(error)})."
            ) from error
    return subject


def _require_transformers() -> None:
    try:
        import transformers  # noqa: F401
    except ImportError:
        raise RegardError(
            "This needs the package transformers: pip install 'regard[hf]'."
        ) from None
