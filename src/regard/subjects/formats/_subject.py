"""A subject from a file of another program: pieces of words in, as that program has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.subjects.lexicon import Lexicon, find_marker
from regard.subjects.subject import LIMIT, Pair, Subject
from regard.tasks.batch import Batch, pad

ROWS = 32
LENGTHS = (1, 9, 33, 129)  # of sentences in the self-test
STEPS = 9
TOLERANCE = 1e-3


def make_lexicon(
    words: Sequence[str], pad: str, start: str | None, end: str, size: int, where: str
) -> Lexicon:
    """The words of one side, which are as many as the model has, and those that are special."""
    if len(words) != size:
        raise RegardError(f"{where} has {len(words)} words, but the model has {size}.")
    numbers = {word: number for number, word in enumerate(words)}
    special = {numbers[word] for word in ("<s>", "</s>", pad) if word in numbers}
    first = None if start is None else numbers.get(start)
    return Lexicon(tuple(words), numbers.get(pad), first, numbers.get(end),
                   frozenset(special), find_marker(words))  # fmt: skip


class FormatSubject(Subject):
    """Sentences are lists of pieces or of numbers, or texts with pieces parted by spaces."""

    def __init__(
        self,
        model: Seq2Seq,
        lexicons: tuple[Lexicon, Lexicon],
        origin: dict[str, Any],
        parity: dict[str, Any],
        ends_source: bool = True,
    ):
        super().__init__(model, lexicons, origin, parity)
        self.ends_source = ends_source
        self.parity |= self.compare_alone()

    def read(self, pairs: Sequence[Pair]) -> list[Batch]:
        """Pieces by their numbers; targets, and sources where the program does so, get an end."""
        return [self._batch(pairs[at : at + ROWS]) for at in range(0, len(pairs), ROWS)]

    def _batch(self, pairs: Sequence[Pair]) -> Batch:
        source, target = self.lexicons.values()
        rows = [self._numbers(said, source, self.ends_source) for said, _ in pairs]
        words, lengths = (torch.from_numpy(x) for x in pad(rows))
        if all(said is None for _, said in pairs):
            empty = torch.zeros(len(rows), 0, dtype=torch.long)
            limit = min(LIMIT, self.longest)
            return self.generate(Batch(words, lengths, empty, empty.sum(1)), limit)
        wanted = [self._numbers(said or (), target, True) for _, said in pairs]
        fed = [[target.start or 0, *row[:-1]] for row in wanted]
        parts = [torch.from_numpy(x) for one in (wanted, fed) for x in pad(one)]
        return Batch(words, lengths, parts[0], parts[1], None, parts[2])

    def _numbers(self, said: Any, lexicon: Lexicon, ends: bool) -> list[int]:
        given: list[Any] = said.split() if isinstance(said, str) else list(said)
        if given and all(isinstance(word, int) for word in given):
            return given
        end = (
            []
            if lexicon.end is None or not ends or given[-1:] == [lexicon.words[lexicon.end]]
            else [lexicon.end]
        )
        return [*lexicon.encode(given), *end]

    @torch.no_grad()
    def compare_alone(self) -> dict[str, float]:
        """The self-test: sentences alone and in a padded batch, steps and a whole pass.

        Random words at all of `LENGTHS` that the model has positions for. Numbers that are too far
        apart are refused.
        """
        drawn = torch.Generator().manual_seed(0)
        least = min(len(lexicon) for lexicon in self.lexicons.values())
        lengths = torch.tensor([n for n in LENGTHS if n <= self.longest])
        widest = int(lengths.max())
        source, fed = (
            torch.randint(least, (len(lengths), widest), generator=drawn) for _ in range(2)
        )
        whole = self.decode(self.encode(source, lengths), fed).logits
        size, alone, steps = max(1.0, float(whole.abs().max())), 0.0, 0.0
        for row, length in enumerate(lengths.tolist()):
            memory = self.encode(source[row : row + 1, :length], lengths[row : row + 1])
            found = self.decode(memory, fed[row : row + 1, :length]).logits[0]
            alone = max(alone, float((found - whole[row, :length]).abs().max()) / size)
            state = memory.initial
            for t in range(min(length, STEPS)):
                logits, state = self.model.step(memory, fed[row : row + 1, t], state)
                steps = max(steps, float((logits[0] - found[t]).abs().max()) / size)
        report = {"a sentence alone and padded": alone, "steps and a whole pass": steps}
        faults = [f"The self-test failed: {name} are {apart:.2g} apart, by the largest logit."
                  for name, apart in report.items() if not apart <= TOLERANCE]  # fmt: skip
        if faults:
            raise RegardError(*faults)
        return report

    @property
    def longest(self) -> int:
        """Words in a sentence that the model has positions for, or as many as are tried."""
        tables = [x for n, x in self.model.named_buffers() if n.endswith(("positions", "table"))]
        return min([len(table) for table in tables], default=max(LENGTHS))
