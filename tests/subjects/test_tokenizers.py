"""Real tokenizers, trained here on small texts: pieces become words, and rows still sum to one."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.subjects.hugging_face._tokens import Tokens
from regard.subjects.lexicon import Lexicon, show_bytes

TEXTS = ["the cat sat on the mat", "a dog barked at the cat", "houses and gardens and children",
         "übermut naïve café 你好"] * 5  # fmt: skip
SENTENCE = "the houses übermut 你好"
WORDS = SENTENCE.split()


def wrap(tokenizer: Any, **special: str) -> Any:
    transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def train(model: Any, before: Any, trainer: Any) -> Any:
    from tokenizers import Tokenizer

    made = Tokenizer(model)
    made.pre_tokenizer = before
    made.train_from_iterator(TEXTS, trainer)
    return made


ROUND = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


def make_bytes(_: Path) -> Any:
    from tokenizers import models, pre_tokenizers, trainers

    level = pre_tokenizers.ByteLevel
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=[*ROUND.values()],
                                  initial_alphabet=level.alphabet(),
                                  show_progress=False)  # fmt: skip
    return wrap(train(models.BPE(), level(add_prefix_space=False), trainer), **ROUND)


def make_word_pieces(_: Path) -> Any:
    from tokenizers import models, pre_tokenizers, trainers

    special = {"bos_token": "[CLS]", "pad_token": "[PAD]", "eos_token": "[SEP]",
               "unk_token": "[UNK]"}  # fmt: skip
    trainer = trainers.WordPieceTrainer(vocab_size=70, special_tokens=[*special.values()],
                                        show_progress=False)  # fmt: skip
    made = train(models.WordPiece(unk_token="[UNK]"), pre_tokenizers.Whitespace(), trainer)
    return wrap(made, **special)


def make_ends(_: Path) -> Any:
    from tokenizers import models, pre_tokenizers, trainers

    trainer = trainers.BpeTrainer(vocab_size=70, special_tokens=[*ROUND.values()],
                                  end_of_word_suffix="</w>", show_progress=False)  # fmt: skip
    model = models.BPE(unk_token="<unk>", end_of_word_suffix="</w>")
    return wrap(train(model, pre_tokenizers.WhitespaceSplit(), trainer), **ROUND)


def make_sentence_pieces(folder: Path, fallback: bool = False) -> Path:
    spm = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    text = folder / "text.txt"
    text.write_text("\n".join(TEXTS), encoding="utf-8")
    spm.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / "spm"), vocab_size=300 if fallback else 80,
        hard_vocab_limit=False, byte_fallback=fallback, minloglevel=2,
        character_coverage=1.0,
    )  # fmt: skip
    return folder / "spm.model"


def make_marian(folder: Path) -> Any:
    """The Python tokenizer of Marian, which knows nothing of words."""
    transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")
    spm = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    model = make_sentence_pieces(folder)
    pieces = spm.SentencePieceProcessor(str(model))
    names = [pieces.id_to_piece(n) for n in range(pieces.get_piece_size())]
    plain = [name for name in names if name not in ("<s>", "</s>", "<unk>")]
    numbers = {name: n for n, name in enumerate(["</s>", "<unk>", *plain, ">>deu<<", "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends a package that it does not need
        return transformers.MarianTokenizer(
            vocab=str(folder / "vocab.json"), source_spm=str(model), target_spm=str(model)
        )


MAKERS = {"Ġ": make_bytes, "##": make_word_pieces, "</w>": make_ends, "▁": make_marian}


class Net:
    """As much of a model as a tokenizer is asked about."""

    main_input_name = "input_ids"

    def __init__(self, tokenizer: Any):
        class Table:
            weight = np.zeros((len(tokenizer), 1))

        class Config:
            decoder_start_token_id = tokenizer.pad_token_id
            eos_token_id, pad_token_id = tokenizer.eos_token_id, tokenizer.pad_token_id
            max_position_embeddings, model_type = 512, "marian"

        self.config = Config()
        self.get_output_embeddings = self.get_input_embeddings = Table


@pytest.fixture(params=list(MAKERS))
def lexicon(request: Any, tmp_path: Path) -> tuple[Lexicon, list[int]]:
    """A lexicon, and the numbers of the sentence with an end word."""
    tokenizer = MAKERS[request.param](tmp_path)
    tokens = Tokens(Net(tokenizer), tokenizer)
    numbers = tokens.read_source(SENTENCE)
    assert isinstance(numbers, list)
    if numbers[-1] != tokens.end:
        numbers = [*numbers, tokens.end or 0]
    found = tokens.lexicons()[0]
    assert found.marker == request.param
    return found, numbers


def test_pieces_become_the_words_of_the_text(lexicon: tuple[Lexicon, list[int]]) -> None:
    words, numbers = lexicon
    assert len(numbers) > len(WORDS) + 2  # there are pieces
    assert words.spell(numbers) == WORDS
    places = words.number_words(np.array([numbers]))[0]
    assert places[-1] == -1 and sorted(set(places[:-1].tolist())) == [0, 1, 2, 3]


def test_merged_rows_sum_to_one_and_alignments_are_right(
    lexicon: tuple[Lexicon, list[int]],
) -> None:
    """Pieces that look at the pieces of one word are a word that looks at that word."""
    from regard.instruments.scores._scores import Scores
    from regard.instruments.words._subwords import pool_recorded

    words, numbers = lexicon
    places = words.number_words(np.array([numbers]))[0]
    size = len(numbers)
    weights = np.zeros((1, 1, size, size))
    for row, own in enumerate(places):  # the first word looks at the last, and so on
        theirs = places == (3 - own if own >= 0 else -1)
        weights[0, 0, row, theirs] = 1 / theirs.sum()
    recording = regard.record(
        {"encoder.states": np.zeros((1, size, 2)), "decoder.states": np.zeros((1, size, 2)),
         "encoder.words": np.array([numbers]), "decoder.words": np.array([numbers]),
         "targets": np.array([numbers]), "decoder.0.cross.weights": weights},
        source_words=words.words, target_words=words.words, pieces=words.marker,
        specials={"pad": words.pad, "end": words.end, "others": tuple(words.special)},
    )  # fmt: skip
    scores = pool_recorded(recording, Scores.of_attention(recording))
    assert scores.values.shape[1:] == (4, 4)
    np.testing.assert_allclose(scores.values.sum(-1), 1)
    gold = [[(3 - j, j) for j in range(4)]]
    assert recording.inspect("aer", gold=gold).estimates()["aer"].mean == 0
    wrong = [[(j, j) for j in range(4)]]
    assert recording.inspect("aer", gold=wrong).estimates()["aer"].mean == 1


def test_language_words_are_no_words(tmp_path: Path) -> None:
    tokenizer = make_marian(tmp_path)
    tokens = Tokens(Net(tokenizer), tokenizer)
    found = tokens.lexicons()[0]
    numbers = tokens.read_source(">>deu<< the cat")
    assert isinstance(numbers, list)
    assert found.words[numbers[0]] == ">>deu<<" and numbers[0] in found.unspoken
    assert found.spell(numbers) == ["the", "cat"]


def test_bytes_of_sentence_pieces_become_letters(tmp_path: Path) -> None:
    spm = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    pieces = spm.SentencePieceProcessor(str(make_sentence_pieces(tmp_path, fallback=True)))
    names = tuple(pieces.id_to_piece(n) for n in range(pieces.get_piece_size()))
    found = Lexicon(names, None, None, pieces.eos_id(), marker="▁")
    numbers = pieces.encode("the 世界")
    assert any(names[n].startswith("<0x") for n in numbers)
    assert found.spell(numbers) == ["the", "世界"]


def test_marks_at_the_end_of_pieces_that_go_on() -> None:
    names = ("<pad>", "</s>", "hou@@", "s@@", "es", "the")
    found = Lexicon(names, 0, None, 1, marker="@@")
    assert found.spell([5, 2, 3, 4, 1, 0]) == ["the", "houses"]


def test_pieces_of_bytes_are_shown_as_text() -> None:
    tokenizer = make_bytes(Path())
    whole = tokenizer.convert_ids_to_tokens(tokenizer("ü ü")["input_ids"])
    assert "ü" in "".join(show_bytes(["Ã¼", "ĠÃ¼"])) and whole
    assert show_bytes(["Ġthe", "ä½ł", "ä½", "<s>", "▁你"]) == (
        "Ġthe", "你", "<0xE4><0xBD>", "<s>", "▁你",
    )  # fmt: skip


def test_a_model_reads_texts_by_its_tokenizer(tiny: Callable[..., Any], tmp_path: Path) -> None:
    """Texts through a real tokenizer and a real model, as a stranger would."""
    tokenizer = make_marian(tmp_path)
    size = len(tokenizer)
    net = tiny("Marian", vocab_size=size, pad_token_id=size - 1, eos_token_id=0,
               decoder_start_token_id=size - 1)  # fmt: skip
    subject = regard.hugging_face(net, tokenizer)
    recording = regard.record(subject, pairs=[("the cat", "a dog"), ("houses", "the mat")])
    numbers = recording["encoder.words"][0][recording["encoder.mask"][0]]
    assert numbers.tolist() == tokenizer("the cat")["input_ids"]
    assert recording["decoder.words"][0, 0] == size - 1
    found = recording.inspect("aer", gold=[[(0, 0), (1, 1)], [(0, 0)]]).estimates()
    assert 0 <= found["aer"].mean <= 1
