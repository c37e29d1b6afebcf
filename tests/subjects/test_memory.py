"""What is recorded, and looked at, does not grow with the vocabulary or with the sentences."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
import torch, transformers
import regard

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024

def forget():
    open("/proc/self/clear_refs", "w").write("5")

words = 250_000
config = transformers.M2M100Config(vocab_size=words, d_model=64, encoder_layers=1,
    decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=32,
    decoder_ffn_dim=32, max_position_embeddings=24)
net = transformers.M2M100ForConditionalGeneration(config).eval()
subject = regard.hugging_face(net)
drawn = torch.Generator().manual_seed(0)
draw = lambda: [*torch.randint(5, words, (6,), generator=drawn).tolist(), 2]
found = {}
for count in (16, 160):
    forget()
    before = peak()
    pairs = [(draw(), draw()) for _ in range(count)]
    rec = regard.record(subject, pairs=pairs, out=sys.argv[1])
    found[f"recorded {count}"] = peak() - before
forget()
before = peak()
for name in ("breakdown", "layers", "heads", "attention_entropy", "sizes", "word_clouds", "offset"):
    rec.inspect(name)
found["inspected"] = peak() - before
print(json.dumps(found))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks are told by Linux")
def test_a_vocabulary_of_250000_words_has_no_dense_table(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the extra hf is not installed")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "r.safetensors")],
        capture_output=True, text=True, timeout=900, check=True,
    )  # fmt: skip
    found = json.loads(run.stdout.splitlines()[-1])
    # One float per word and unit is 61 MB, per word and word 238,000; logits of a piece are 64.
    assert found["inspected"] < 60, found
    assert found["recorded 160"] < 1.3 * found["recorded 16"] + 40, found
    assert found["recorded 160"] < 400, found
