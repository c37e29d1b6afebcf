"""Tasks of texts: files of any size, numbered once, kept in the cache, and read from there."""

from __future__ import annotations

import json
import shutil
import tempfile
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regard.cache import cache_folder, content_hash, one_at_a_time
from regard.code import hash_code, join_hashes
from regard.errors import RegardError, in_words
from regard.tasks.batch import Ints
from regard.tasks.corpus import CorpusTask
from regard.tasks.packed import Side
from regard.tasks.task import Task, TaskConfig
from regard.tasks.text._cut import Cut, Cutter, Pair
from regard.tasks.text._draft import Draft
from regard.tasks.text._stored import Damaged, Stored, Writer, open_stored
from regard.tasks.text_files import Faults, Meter
from regard.tasks.vocabulary import EOS, SOS

CORPORA = "corpora"  # in the cache folder
READING = {"reverse_source", "padding"}  # settings that change how rows are read, not which


class TextTask(CorpusTask):
    """A task whose rows are lines of files, in words or pieces of words.

    A subclass says what its rows are (`stream`), how one is cut into words (`cutter`), what is
    learned from the rows to train on (`learn`, `recall`), and the numbers of a word (`encode`).
    """

    noun: ClassVar[str] = "pairs"
    config: Any
    skipped: dict[str, int]

    def __init__(self, config: TaskConfig):
        super().__init__(config)
        stored = open_corpus(self)
        self.recall(stored.learned)
        self.rows = {**stored.rows}
        self.skipped = stored.skipped

    @abstractmethod
    def find_parts(self) -> list[str]:
        """The parts that have files of their own."""

    def find_files(self, part: str) -> list[Path]:
        """The files of a part."""
        found: list[Path] = self.config.paths(part)
        return found

    @abstractmethod
    def stream(self, part: str, faults: Faults, meter: Meter) -> Iterator[Pair]:
        """The rows of a part, two texts each, one by one."""

    @abstractmethod
    def cutter(self) -> Cutter:
        """How a row is cut into words; it goes to other processes."""

    @abstractmethod
    def check_parts(self, counts: Mapping[str, int], skipped: Counter[str]) -> None:
        """Refuse parts of which no row is left, or with which something else is wrong."""

    @abstractmethod
    def learn(self, draft: Draft) -> dict[str, Any]:
        """What there is to know of the rows to train on, such as their words, as plain JSON."""

    @abstractmethod
    def recall(self, learned: dict[str, Any]) -> None:
        """Set the vocabularies by what was learned."""

    @abstractmethod
    def encode(self, words: Sequence[str], side: int) -> Side:
        """The numbers of each word of the source (0) or target (1): a row for each word."""

    def limits(self) -> dict[str, tuple[int, str]]:
        """The most rows of parts that have a limit, with the setting that says so."""
        return {}

    def drop(self, name: str, sides: tuple[Side, Side]) -> tuple[NDArray[np.bool_], str] | None:
        """Which rows of a part are left out once they are numbered, and why."""
        return None


def open_corpus(task: TextTask) -> Stored:
    """The corpus of a task, from the cache; made and kept there if it is not there, or damaged.

    Of several processes that want the same one, one makes it and the others wait.
    """
    folder = cache_folder() / CORPORA / name_corpus(task)
    with suppress(Damaged):
        return open_stored(folder)
    with _reserve(folder) as place:
        with suppress(Damaged):
            return open_stored(place)  # somebody else has made it meanwhile
        shutil.rmtree(place, ignore_errors=True)
        return make_corpus(task, place)


@contextmanager
def _reserve(folder: Path) -> Iterator[Path]:
    """The folder, for this process alone; where nothing can be kept, one that soon goes away.

    Files that are mapped by then can be read all the same.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(one_at_a_time(folder.with_suffix(".lock")))
        except OSError:
            other = tempfile.TemporaryDirectory(prefix="regard-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(other), "corpus")
        yield folder


def name_corpus(task: TextTask) -> str:
    """The hash of all that determines a corpus: content of files, settings, and the code."""
    paths = {str(path) for path in task.config.files()}
    settings = {
        key: value
        for key, value in task.config.model_dump(exclude=READING).items()
        if not (isinstance(value, str) and {*value.split(",")} & paths)
    }
    data = [
        [part, [[content_hash(path), path.suffixes] for path in task.find_files(part)]]
        for part in task.find_parts()
    ]
    code = hash_reader(type(task))
    return sha256(json.dumps([code, settings, data]).encode()).hexdigest()[:32]


def hash_reader(kind: type[Task]) -> str:
    """The hash of the code that reads the files of a kind of task."""
    return join_hashes(hash_code([kind], ["regard.tasks"]))


def name_class(kind: type[Task]) -> str:
    """Where a kind of task is defined."""
    return f"{kind.__module__}:{kind.__qualname__}"


def describe_text(task: TextTask) -> dict[str, Any]:
    """What a corpus is made of, so that it can be told when nobody will ask for it any more."""
    files = {str(path.absolute()): content_hash(path) for path in task.config.files()}
    return {"task": name_class(type(task)), "code": hash_reader(type(task)), "files": files}


def make_corpus(task: TextTask, folder: Path) -> Stored:
    """Make the folder of a corpus: in another one first, so that it is whole or not there."""
    part = folder.with_suffix(".part")
    try:
        part.mkdir(parents=True, exist_ok=True)
        _fill(task, part)
        part.rename(folder)
    except OSError as error:
        raise RegardError(
            f"The corpus could not be kept in {part}. {in_words(error)} Make room there, or name"
            " another folder by REGARD_CACHE; what is done so far is gone on with."
        ) from None
    return open_stored(folder)


def _fill(task: TextTask, folder: Path) -> None:
    draft, writer = Draft(task, folder), Writer(folder)
    learned = task.learn(draft)
    task.recall(learned)
    words = max(len(task.source_vocabulary), len(task.target_vocabulary))
    kind = "<u2" if words <= 2**16 else "<i4"
    names = ["train", *task.splits]
    counts = {name: writer.write_part(name, _number(task, draft, name), kind) for name in names}
    task.check_parts({"train": counts["train"]}, draft.skipped)
    skipped = dict(+draft.skipped)
    about = {"learned": learned, "skipped": skipped, "kind": kind, "parts": names}
    writer.finish({**about, "of": describe_text(task)})


def _number(task: TextTask, draft: Draft, name: str) -> Iterator[tuple[Side, Side]]:
    """The rows of a part in numbers, piece by piece."""
    for cut, mask in draft.rows_of(name):
        sides = _number_side(task, cut, mask, 0), _number_side(task, cut, mask, 1)
        if dropped := task.drop(name, sides):
            away, why = dropped
            draft.skipped[why] += int(away.sum())
            sides = sides[0].take(~away), sides[1].take(~away)
        yield sides


def _number_side(task: TextTask, cut: Cut, mask: NDArray[np.bool_], side: int) -> Side:
    numbers = cut.numbers[side][np.repeat(mask, cut.lengths[side])]
    rows = Side.joined(numbers, cut.lengths[side][mask])
    vocabulary = (task.source_vocabulary, task.target_vocabulary)[side]
    ends = vocabulary.ends and (task.ends or side == 0)
    found = replace_words(rows, task.encode(cut.words[side], side))
    return frame(found, task.starts and side == 0, ends)


def replace_words(rows: Side, words: Side) -> Side:
    """Rows of numbers of words as rows of what each word has in `words`."""
    found = words.take(rows.numbers.astype(np.int64)).compact()
    ends = np.concatenate([[0], np.cumsum(found.lengths)])
    lengths: Ints = ends[rows.starts + rows.lengths] - ends[rows.starts]
    return Side.joined(found.numbers, lengths)


def frame(rows: Side, start: bool, end: bool) -> Side:
    """Rows, one behind the other, with `<SOS>` before each and `<EOS>` behind, where asked."""
    wide = Side.joined(rows.numbers, rows.lengths + int(start) + int(end))
    made = np.full(int(wide.lengths.sum()), EOS, np.int32)
    inside = np.ones(len(made), bool)
    if start:
        made[wide.starts] = SOS
        inside[wide.starts] = False
    if end:
        inside[wide.starts + wide.lengths - 1] = False
    made[inside] = rows.numbers
    return Side.joined(made, wide.lengths)


def number_each(words: Sequence[str], number: Callable[[str], int]) -> Side:
    """Words that have one number each."""
    found = np.fromiter(map(number, words), np.int32, len(words))
    return Side.joined(found, np.ones(len(words), np.int64))
