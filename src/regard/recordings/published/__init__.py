"""Two published networks that turn English spelling into phonemes, with Regard's interface.

They keep their own parameters, number for number; only the order of words is Regard's: `<PAD>`,
`<SOS>`, `<EOS>`, then the rest in the order of the published vocabulary.
"""

from regard.recordings.published.attentive import AttentiveSpeller
from regard.recordings.published.fixed_vector import FixedVectorSpeller
from regard.recordings.published.load import load_published
from regard.recordings.published.speller import Published

__all__ = ["AttentiveSpeller", "FixedVectorSpeller", "Published", "load_published"]
