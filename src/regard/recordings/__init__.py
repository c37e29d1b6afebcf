"""What a model did: the recording, its file, and the adapters that make one."""

from regard.recordings.arrays import record_arrays
from regard.recordings.module import record_module
from regard.recordings.native import record_model
from regard.recordings.record import record
from regard.recordings.recording import Recording, SiteInfo, load_recording

__all__ = [
    "Recording",
    "SiteInfo",
    "load_recording",
    "record",
    "record_arrays",
    "record_model",
    "record_module",
]
