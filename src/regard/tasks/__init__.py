"""What to learn: one file per task, and the contract they all keep."""

from regard.tasks import addition as addition
from regard.tasks import one_to_one as one_to_one
from regard.tasks import reversal as reversal
from regard.tasks.batch import Batch, collate
from regard.tasks.task import Task, TaskConfig, tasks
from regard.tasks.vocabulary import EOS, PAD, SOS, SPECIAL, Vocabulary

__all__ = [
    "EOS",
    "PAD",
    "SOS",
    "SPECIAL",
    "Batch",
    "Task",
    "TaskConfig",
    "Vocabulary",
    "collate",
    "tasks",
]
