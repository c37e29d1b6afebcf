"""`python -m benchmarks models`: what recording another program's model costs."""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

import regard
from benchmarks.benchmark import BENCHMARKS, Benchmark, agree, take_turns
from regard.errors import RegardError
from regard.training import one_thread

GROWTH = 1.1  # peak memory may be this many times that of two pieces: the first, and one after it
WORDS = 8000


@BENCHMARKS.register("models")
def models(sentences: int = 400, rounds: int = 3, layers: int = 6, size: int = 512) -> Benchmark:
    """A Marian of that size with random weights, recorded, against plain passes with eager
    attention over the same batches; and peak memory, against that of two pieces of sentences."""
    net = make_marian(layers, size)
    subject = regard.hugging_face(net)
    pairs = draw_pairs(sentences)
    batches = subject.read(pairs)
    with one_thread(), tempfile.TemporaryDirectory() as folder, torch.no_grad():
        out = Path(folder) / "marian.safetensors"

        def record() -> None:
            regard.record(subject, batches=batches, sites="cross", out=out)

        def run() -> list[Any]:
            return [run_plainly(net, batch) for batch in batches]

        regard.record(subject, batches=batches[:2], sites="cross", out=out)
        small = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        record()
        large = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        chosen = run()[0].argmax(dim=2)[batches[0].target_mask]
        seen = regard.load_recording(out)["predictions"][: len(batches[0])]
        said = torch.from_numpy(seen[:, : batches[0].target.shape[1]])[batches[0].target_mask]
        agree("The words chosen", float((said == chosen).double().mean()), 1.0, 1e-2)
        ours, plain = take_turns(record, run, rounds=rounds, clock=time.process_time)
    cost = statistics.median(a / b for a, b in zip(ours, plain, strict=True))
    about = f"{sentences} sentences, {layers} layers of size {size}, cross-attention to a file"
    ratios = {
        "recording": (1.5 / cost, 1.0, f"1.5 plain eager passes over recording: {about}"),
        "memory": (
            GROWTH * small / large,
            1.0,
            "1.1 times the peak of two pieces, over that of all",
        ),
    }
    raw = {"cost": cost, "seconds": ours, "plain_seconds": plain, "kilobytes": [small, large]}
    return Benchmark("models", ratios, raw)


def make_marian(layers: int, size: int) -> Any:
    """A Marian with random weights and eager attention."""
    try:
        library: Any = import_module("transformers")
    except ImportError:
        raise RegardError("This needs transformers: pip install 'regard[hf]'.") from None
    torch.manual_seed(0)
    config = library.MarianConfig(
        vocab_size=WORDS, d_model=size, encoder_layers=layers, decoder_layers=layers,
        encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=4 * size,
        decoder_ffn_dim=4 * size, max_position_embeddings=140, pad_token_id=WORDS - 1,
        eos_token_id=0, decoder_start_token_id=WORDS - 1, attn_implementation="eager",
    )  # fmt: skip
    return library.MarianMTModel(config).eval()


def draw_pairs(count: int) -> list[tuple[list[int], list[int]]]:
    """Sentences of 8 to 31 random words."""
    drawn = torch.Generator().manual_seed(0)

    def draw() -> list[int]:
        length = int(torch.randint(8, 32, (1,), generator=drawn))
        return [*torch.randint(1, WORDS - 1, (length,), generator=drawn).tolist(), 0]

    return [(draw(), draw()) for _ in range(count)]


def run_plainly(net: Any, batch: Any) -> Any:
    """A forced pass without a cache, as anyone would write it."""
    return net(
        input_ids=batch.source, attention_mask=batch.source_mask.long(),
        decoder_input_ids=batch.inputs, use_cache=False,
    ).logits  # fmt: skip
