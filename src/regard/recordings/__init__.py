"""What a model did: the recording, its file, and the adapters that make one."""

from regard.recordings.arrays import record_arrays
from regard.recordings.module import record_module
from regard.recordings.native import record_model
from regard.recordings.published import Published, load_published
from regard.recordings.record import record
from regard.recordings.recording import Recording, SiteInfo, load_recording

__all__ = [
    "Published",
    "Recording",
    "SiteInfo",
    "load_published",
    "load_recording",
    "record",
    "record_arrays",
    "record_model",
    "record_module",
]
