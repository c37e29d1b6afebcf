"""Two published networks that turn English spelling into phonemes, with Regard's interface.

They keep their own parameters, number for number; only the order of words is Regard's: `<PAD>`,
`<SOS>`, `<EOS>`, then the rest in the order of the published vocabulary.
"""

from regard.models.published.attentive import AttentiveSpeller
from regard.models.published.fixed_vector import FixedVectorSpeller
from regard.models.published.load import load_published
from regard.models.published.speller import Published

__all__ = ["AttentiveSpeller", "FixedVectorSpeller", "Published", "load_published"]
