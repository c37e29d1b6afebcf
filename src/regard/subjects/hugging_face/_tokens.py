"""Texts to numbers and back, by the tokenizer of a model of `transformers`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import RegardError, kind_of
from regard.subjects.lexicon import Lexicon, find_marker, show_bytes
from regard.subjects.subject import Said

# Names of languages that some vocabularies have among their words.
LANGUAGE = re.compile(r">>.+<<|__[a-z]{2,3}__|<2\w+>|<\|.*\|>|[a-z]{2,3}_[A-Z][A-Za-z]{1,3}")


class Tokens:
    """How one model's sentences become numbers; without a tokenizer they are given as numbers."""

    def __init__(self, net: Any, tokenizer: Any = None):
        if tokenizer is not None and not hasattr(tokenizer, "convert_ids_to_tokens"):
            raise RegardError(
                f"{kind_of(tokenizer)} is no tokenizer. Give the one of `transformers` that belongs"
                " to the model, such as AutoTokenizer.from_pretrained(folder)."
            )
        self.net, self.tokenizer = net, tokenizer
        self.speech = net.main_input_name == "input_features"
        said = getattr(net, "generation_config", None)
        self.start = self._find("decoder_start_token_id", said)
        if self.start is None:
            self.start = self._find("bos_token_id", said)
        self.end, self.pad = (self._find(f"{name}_token_id", said) for name in ("eos", "pad"))
        if self.start is None:
            raise RegardError(
                "This model does not say what its decoder is fed first. Set"
                " model.config.decoder_start_token_id."
            )

    def _find(self, name: str, *further: Any) -> int | None:
        for where in (self.net.config, *further):
            value = getattr(where, name, None)
            if isinstance(value, (list, tuple)):
                value = value[0] if value else None
            if value is not None:
                return int(value)
        return None

    def lexicons(self) -> tuple[Lexicon, Lexicon]:
        """The words of both sides, by the tokenizer's own numbers."""
        rows = self.net.get_output_embeddings().weight.shape[0]
        table = self.net.get_input_embeddings()
        read = rows if self.speech else table.weight.shape[0]
        target = self._lexicon(rows, True)
        if self.speech:
            return Lexicon(("<frame>",), None, None, None, marker=""), target
        return self._lexicon(read, False), target

    def _lexicon(self, size: int, target: bool) -> Lexicon:
        names = self._names(size, target)
        known = {self.pad, self.start, self.end}
        special = {n for n, name in enumerate(names) if LANGUAGE.fullmatch(name)} - known
        if self.tokenizer is not None:
            unknown = getattr(self.tokenizer, "unk_token_id", None)
            special |= {n for n in self.tokenizer.all_special_ids if n < size} - {unknown, *known}
        marker = find_marker(names) if self.tokenizer is not None else ""
        if marker == "Ġ":
            names = show_bytes(names)
        return Lexicon(names, self.pad, self.start, self.end, frozenset(special), marker)

    def _names(self, size: int, target: bool) -> tuple[str, ...]:
        """The name of every number; those that the tokenizer has no word for are told apart."""
        if self.tokenizer is None:
            return tuple(map(str, range(size)))
        tokenizer = self.tokenizer
        separate = target and getattr(tokenizer, "separate_vocabs", False)
        if separate and hasattr(tokenizer, "target_encoder"):
            found = {n: word for word, n in tokenizer.target_encoder.items()}
            return tuple(found.get(n, f"<unused {n}>") for n in range(size))
        count = min(size, max(tokenizer.get_vocab().values(), default=-1) + 1)
        names = tokenizer.convert_ids_to_tokens(list(range(count)))
        words = [f"<unused {n}>" if name is None else name for n, name in enumerate(names)]
        return (*words, *(f"<unused {n}>" for n in range(count, size)))

    def read_source(self, said: Said) -> list[int] | Tensor:
        """The numbers of a source; of speech, its features (positions, 2·size)."""
        if self.speech:
            features = torch.as_tensor(np.asarray(said), dtype=torch.float32)
            size, frames = features.shape[-2:]
            return features.reshape(size, frames).T.reshape(frames // 2, 2 * size)
        numbers = self._numbers(said, False)
        self._check_length(numbers, "source")
        return numbers

    def read_target(self, said: Said) -> tuple[list[int], list[int]]:
        """The numbers of a target, and what is fed: the start word, then all but the last."""
        numbers = self._numbers(said, True)
        self._check_length(numbers, "target")
        assert self.start is not None
        if self.speech and numbers[:1] == [self.start]:
            return numbers[1:], numbers[:-1]
        return numbers, [self.start, *numbers[:-1]]

    def _numbers(self, said: Said, target: bool) -> list[int]:
        if isinstance(said, str):
            return self._tokenize(said, target)
        given = said.tolist() if hasattr(said, "tolist") else list(said)
        if all(isinstance(number, int) for number in given):
            table = self.net.get_output_embeddings() if target else self.net.get_input_embeddings()
            size = table.weight.shape[0]
            if strange := [number for number in given if not 0 <= number < size]:
                raise RegardError(f"Word number {strange[0]} is beyond the {size} words there are.")
            return given
        if self.tokenizer is None:
            raise self._mute()
        numbers: list[int] = self.tokenizer.convert_tokens_to_ids(given)
        unknown = getattr(self.tokenizer, "unk_token", None)
        strange = [
            p
            for p, n in zip(given, numbers, strict=True)
            if n is None or (n == getattr(self.tokenizer, "unk_token_id", None) and p != unknown)
        ]
        if strange:
            raise RegardError(
                f"The tokenizer has no piece '{strange[0]}'. A list holds pieces or numbers; give"
                " a text as one string."
            )
        return numbers

    def _tokenize(self, text: str, target: bool) -> list[int]:
        if self.tokenizer is None:
            raise self._mute()
        given = {"text_target": text} if target else {"text": text}
        found = self.tokenizer(**given, truncation=False)
        return [int(n) for n in found["input_ids"]]

    def _mute(self) -> RegardError:
        return RegardError(
            "There is no tokenizer, so texts cannot be read. Give one,"
            " hugging_face(model, tokenizer), or pairs of lists of word numbers."
        )

    def count(self) -> int:
        """How many words both sides have."""
        target: int = self.net.get_output_embeddings().weight.shape[0]
        return (
            target if self.speech else min(target, self.net.get_input_embeddings().weight.shape[0])
        )

    def limit(self, side: str) -> int:
        """How many positions a side has."""
        config = self.net.config
        names = {"source": "max_source_positions", "target": "max_target_positions"}
        encoder = getattr(config, "max_encoder_position_embeddings", None)
        decoder = getattr(config, "max_decoder_position_embeddings", None)
        own = getattr(config, names[side], None) or (encoder if side == "source" else decoder)
        if (
            own is None
            and hasattr(config, "relative_attention_num_buckets")
            and config.model_type != "prophetnet"
        ):
            return 10**9  # positions are relative
        found: Any = own or getattr(config, "max_position_embeddings", 10**9)
        return int(found)

    def _check_length(self, numbers: Sequence[int], side: str) -> None:
        most = self.limit(side)
        if not numbers:
            raise RegardError(f"A {side} is empty. Give one word or more.")
        if len(numbers) > most:
            raise RegardError(
                f"A {side} has {len(numbers)} pieces, but this model has {most} positions. Cut it"
                " where it makes sense; nothing is cut silently."
            )
