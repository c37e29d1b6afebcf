"""What to learn: one file per task, and the contract they all keep."""

from regard.tasks import addition as addition
from regard.tasks import classification as classification
from regard.tasks import copying as copying
from regard.tasks import escan as escan
from regard.tasks import keyword as keyword
from regard.tasks import lookup as lookup
from regard.tasks import one_to_one as one_to_one
from regard.tasks import parallel as parallel
from regard.tasks import reversal as reversal
from regard.tasks import scan as scan
from regard.tasks import translation as translation
from regard.tasks.batch import Batch, collate, mean_offset
from regard.tasks.corpus import CorpusTask
from regard.tasks.task import Task, TaskConfig, tasks
from regard.tasks.vocabulary import EOS, PAD, SOS, SPECIAL, Vocabulary

__all__ = [
    "EOS",
    "PAD",
    "SOS",
    "SPECIAL",
    "Batch",
    "CorpusTask",
    "Task",
    "TaskConfig",
    "Vocabulary",
    "collate",
    "mean_offset",
    "tasks",
]
