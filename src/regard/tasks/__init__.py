"""What to learn: one file per task, and the contract they all keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.lazy import attach

if TYPE_CHECKING:
    from regard.tasks.batch import Batch as Batch
    from regard.tasks.batch import collate as collate
    from regard.tasks.corpus import CorpusTask as CorpusTask
    from regard.tasks.task import TASKS as TASKS
    from regard.tasks.task import Task as Task
    from regard.tasks.task import TaskConfig as TaskConfig
    from regard.tasks.vocabulary import EOS as EOS
    from regard.tasks.vocabulary import PAD as PAD
    from regard.tasks.vocabulary import SOS as SOS
    from regard.tasks.vocabulary import SPECIAL as SPECIAL
    from regard.tasks.vocabulary import Vocabulary as Vocabulary
else:
    __getattr__, __dir__, __all__ = attach(__name__)
