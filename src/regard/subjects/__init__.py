"""Subjects: any network with its words, as one kind of object that every instrument takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.lazy import attach

if TYPE_CHECKING:
    from regard.subjects.formats.ctranslate2 import ctranslate2 as ctranslate2
    from regard.subjects.formats.eole import eole as eole
    from regard.subjects.formats.fairseq import fairseq as fairseq
    from regard.subjects.formats.joeynmt import joeynmt as joeynmt
    from regard.subjects.formats.marian import marian as marian
    from regard.subjects.formats.onnx import onnx as onnx
    from regard.subjects.formats.opennmt import opennmt as opennmt
    from regard.subjects.hugging_face.door import hugging_face as hugging_face
    from regard.subjects.lexicon import Lexicon as Lexicon
    from regard.subjects.modules.at import at as at
    from regard.subjects.modules.door import module as module
    from regard.subjects.subject import Subject as Subject
else:
    __getattr__, __dir__, __all__ = attach(__name__)
