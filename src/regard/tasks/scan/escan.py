"""Extended SCAN: short commands strung together to one length (aitken2021)."""

from __future__ import annotations

import numpy as np
from pydantic import Field, model_validator

from regard.tasks.batch import Batch, Ints, pad
from regard.tasks.scan._grammar import Words, commands
from regard.tasks.task import TASKS, Task, TaskConfig
from regard.tasks.vocabulary import EOS, Vocabulary

WORDS = ("run", "walk", "jump", "left", "and", "twice")
ACTIONS = ("I_RUN", "I_WALK", "I_JUMP", "I_TURN_LEFT")
PERIOD = "."


def base_phrases(conjunction: bool = True) -> dict[Words, Words]:
    """The 90 phrases that eSCAN is made of, and their actions; the 9 without `and` if asked.

    These are the commands of SCAN over six words, without those that say `left twice`, which the
    authors leave out.
    """
    allowed = {word for word in WORDS if conjunction or word != "and"}
    return {
        command: actions
        for command, actions in commands().items()
        if allowed.issuperset(command) and "left twice" not in " ".join(command)
    }


def origins(phrase: Words) -> list[int]:
    """The position in a base phrase that each of its actions comes from.

    A verb gives its action, `left` its turn (which comes first), `twice` the second action.
    """
    found: list[int] = []
    for place, word in enumerate(phrase):
        if word == "left":
            found.insert(-1, place)  # the turn goes before the verb that was just read
        elif word != "and":
            found.append(place)
    return found


@TASKS.register("escan")
class Escan(Task):
    """`run twice . jump left .` to `I_RUN I_RUN . I_TURN_LEFT I_JUMP .`, and its alignment."""

    class Config(TaskConfig):
        """How long the outputs are, and which words there are."""

        shortest: int = Field(
            15, ge=1, description="output words at least, with periods and without <EOS>"
        )
        longest: int = Field(20, ge=1, description="output words at most")
        period: bool = Field(True, description="a period after every phrase, on both sides")
        conjunction: bool = Field(
            True, description="false: no phrase with `and`, so both sides are equally long"
        )

        @model_validator(mode="after")
        def _check_bounds(self) -> Escan.Config:
            if self.shortest > self.longest:
                raise ValueError(f"shortest is {self.shortest} but longest is {self.longest}")
            if self.period and self.longest < 2:
                raise ValueError(
                    "longest is 1, but an action and its period are 2 words: set longest to 2 or"
                    " more, or period to false"
                )
            return self

    config: Config

    def __init__(self, config: Config):
        super().__init__(config)
        words = [word for word in WORDS if config.conjunction or word != "and"]
        stop = [PERIOD] if config.period else []
        self.source_vocabulary = Vocabulary.of([*words, *stop])
        self.target_vocabulary = Vocabulary.of([*ACTIONS, *stop])
        self._store(base_phrases(config.conjunction), stop)
        self._choices, self._counts = self._list_choices()

    def draw(self, rng: np.random.Generator, size: int) -> Batch:
        """Phrases drawn uniformly until the output is long enough.

        A phrase that would make it too long is drawn again. So is one after which the bounds could
        not be met any more, which happens only where `shortest` equals `longest`.
        """
        return self.join_phrases(self._draw_phrases(rng, size))

    def join_phrases(self, chosen: Ints) -> Batch:
        """Rows of phrase numbers as a batch; the last two numbers are `<EOS>` and nothing.

        (batch, phrases) -> source (batch, source), target and alignment (batch, target)
        """
        lengths = self._source_lengths[chosen]
        starts = np.cumsum(lengths, axis=1) - lengths  # (batch, phrases)
        source, source_lengths = _join(self._sources[chosen], lengths)
        lengths = self._target_lengths[chosen]
        target, target_lengths = _join(self._targets[chosen], lengths)
        alignment, _ = _join(self._origins[chosen] + starts[:, :, None], lengths, fill=-1)
        return Batch.of(source, source_lengths, target, target_lengths, alignment)

    def _store(self, phrases: dict[Words, Words], stop: list[str]) -> None:
        """Numbers, lengths and alignments of each phrase, then those of `<EOS>` and of nothing."""
        encode = self.source_vocabulary.encode
        sources = [encode([*phrase, *stop]) for phrase in phrases]
        targets = [self.target_vocabulary.encode([*acts, *stop]) for acts in phrases.values()]
        places = [[*origins(phrase), *(len(phrase) for _ in stop)] for phrase in phrases]
        self._sources, self._source_lengths = pad([*sources, [EOS], []])
        self._targets, self._target_lengths = pad([*targets, [EOS], []])
        self._origins, _ = pad([*places, [0], []])
        self._end, self._nothing = len(phrases), len(phrases) + 1

    def _list_choices(self) -> tuple[Ints, Ints]:
        """For each output length so far, the phrases that may come next, and how many they are.

        -> (lengths, phrases) padded with "nothing", (lengths,)
        """
        shortest, longest = self.config.shortest, self.config.longest
        sizes = self._target_lengths[: self._end]
        fits = np.arange(longest + 1) >= shortest  # lengths from which the bounds can be met
        choices: list[list[int]] = [[self._end]] * (longest + 1)
        for length in range(shortest - 1, -1, -1):
            ends = length + sizes
            good = (ends <= longest) & fits[np.minimum(ends, longest)]
            fits[length] = good.any()
            choices[length] = np.flatnonzero(good).tolist()
        return pad(choices)

    def _draw_phrases(self, rng: np.random.Generator, size: int) -> Ints:
        """Rows of phrase numbers, each with `<EOS>` behind it. (size, phrases)"""
        length, ended = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool)
        columns = []
        while not ended.all():
            drawn = self._choices[length, rng.integers(self._counts[length])]
            drawn[ended] = self._nothing
            columns.append(drawn)
            ended = ended | (drawn == self._end)
            length = np.where(ended, length, length + self._target_lengths[drawn])
        return np.stack(columns, axis=1)


def _join(pieces: Ints, lengths: Ints, fill: int = 0) -> tuple[Ints, Ints]:
    """The first `lengths` numbers of each piece in a row, joined; what is left over is `fill`.

    (batch, pieces, width), (batch, pieces) -> (batch, joined), (batch,)
    """
    mask = np.arange(pieces.shape[2]) < lengths[:, :, None]
    totals = lengths.sum(axis=1)
    joined = np.full((len(pieces), int(totals.max())), fill, dtype=np.int64)
    joined[np.arange(joined.shape[1]) < totals[:, None]] = pieces[mask]
    return joined, totals
