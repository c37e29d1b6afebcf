"""A few updates of every preset: their losses and the weights' sizes are what they were.

Held to a thousandth, so that another version of torch passes; a constant that changed does not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shown import hold

from regard.models import MODELS
from regard.runs import assemble
from regard.runs.presets import PRESETS
from regard.training import Trainer, evaluate

SMALL: dict[str, Any] = {"hidden": 8, "batch": 3, "held_out": 6, "shortest": 2, "longest": 4}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_few_updates(preset: str) -> None:
    fields = MODELS[str(PRESETS[preset]["model.kind"])][0].model_fields
    own = {key: value for key, value in SMALL.items() if key != "hidden" or "hidden" in fields}
    if "vectors" in fields and PRESETS[preset].get("model.vectors"):
        pytest.skip("it begins with a user's word vectors")
    inner = ("embedding", "decoder_embedding")
    own |= dict.fromkeys([key for key in inner if PRESETS[preset].get(f"model.{key}")], 4)
    config = assemble("reversal", preset, 3, own)
    task = config.make_task()
    trainer = Trainer(config.make_model(task), task, config.training, 3)
    found: dict[str, Any] = {"losses": [trainer.step() for _ in range(3)]}
    named = trainer.model.named_parameters()
    found["sizes"] = {name: float(p.detach().norm()) for name, p in named}
    found["metrics"] = evaluate(trainer.model, task, task.split("validation"))
    hold(Path(__file__).with_name("golden.json"), preset, found)
