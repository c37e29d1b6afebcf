"""What a model did: the recording, its file, and the adapters that make one."""

from regard.recordings.adapters.arrays import record_arrays
from regard.recordings.adapters.model import record_model
from regard.recordings.adapters.module import record_module
from regard.recordings.decomposition import Decomposition, decompose
from regard.recordings.record import record
from regard.recordings.recording import Recording, load_recording
from regard.recordings.sharding import gather_shards
from regard.recordings.site import Site

__all__ = [
    "Decomposition",
    "Recording",
    "Site",
    "decompose",
    "gather_shards",
    "load_recording",
    "record",
    "record_arrays",
    "record_model",
    "record_module",
]
