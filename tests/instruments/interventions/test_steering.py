"""Changes of a running model, held against numpy by hand and against brute force."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.errors import RegardError
from regard.instruments.interventions._changes import (
    PutState,
    RemoveHead,
    RemovePart,
    RemoveUnit,
    ScaleTerms,
    SetWeight,
)
from regard.instruments.interventions._steering import Change, Sentence, find_reach, steer
from regard.models import MODELS
from regard.models.decoding import beam, greedy
from regard.models.seq2seq import Output, Seq2Seq
from regard.recordings import Recording, Site, record
from regard.recordings.adapters.model import describe_site
from regard.tasks import TASKS
from regard.tasks.batch import Batch

TASK = TASKS["one-to-one"](TASKS["one-to-one"].Config())
KINDS = {
    "dot": ("encoder-decoder", {"attention": "dot", "hidden": 12, "cell": "gru"}),
    "before": (
        "encoder-decoder",
        {"attention": "bilinear", "attend": "before", "focus": "concatenate", "hidden": 12},
    ),
    "transformer": ("transformer", {"hidden": 12, "heads": 3, "layers": 2, "feedforward": 16}),
}


def build(name: str) -> Seq2Seq:
    kind, settings = KINDS[name]
    config, model = MODELS[kind]
    torch.manual_seed(3)
    made: Any = model
    sizes = len(TASK.source_vocabulary), len(TASK.target_vocabulary)
    built: Seq2Seq = made(config(**settings), *sizes)
    return built.eval()


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    return build(request.param)


ONE = TASK.fresh(1, 5)


def reference(model: Seq2Seq) -> Recording:
    return record(model, n=40, task=TASK, also=("values",), inputs="teacher")


@torch.no_grad()
def run(model: Seq2Seq, changes: Sequence[Change] = (), batch: Batch = ONE) -> Output:
    """All steps at once, fed the teacher's words."""
    sentence = Sentence(batch.source, batch.inputs)
    with steer(model, changes, sentence):
        sentence.begin()
        return model(batch.source, batch.source_lengths, batch.inputs)


@torch.no_grad()
def run_steps(model: Seq2Seq, changes: Sequence[Change]) -> Tensor:
    """The same logits one step after the other."""
    sentence = Sentence(ONE.source)
    with steer(model, changes, sentence):
        sentence.begin()
        memory = model.encode(ONE.source, ONE.source_lengths)
        state, logits = memory.initial, []
        for step, words in enumerate(ONE.inputs.unbind(1)):
            sentence.feed(ONE.inputs[:, : step + 1])
            found, state = model.step(memory, words, state)
            logits.append(found)
    return torch.stack(logits, dim=1)


def changes_of(model: Seq2Seq) -> dict[str, Change]:
    recording = reference(model)
    site = model.crossing_sites()[-1]
    parts = recording.decomposition.site(site)
    values = recording.decomposition.heads(f"{site}.values", "encoder")
    last = parts.site.heads - 1
    return {
        "terms": ScaleTerms(parts, (0, 1, 2, 1, 1, 0.5, 1, 1, 0), head=last),
        "weight": SetWeight(site, 2, 1, 0.75),
        "head": RemoveHead(site, 0),
        "encoder unit": RemoveUnit("encoder", 3),
        "decoder unit": RemoveUnit("decoder", 3),
        "encoder state": PutState("encoder", 1, (0.5,) * 12),
        "decoder state": PutState("decoder", 2, (0.5,) * 12),
        **{
            f"{part} of {where}": RemovePart(parts, values, part, where)
            for part in ("temporal", "input", "delta")
            for where in ("queries", "keys", "alignment", "context")
        },
    }


def test_a_change_holds_step_by_step_as_at_once(model: Seq2Seq) -> None:
    plain = run(model).logits
    for name, change in changes_of(model).items():
        whole = run(model, [change]).logits
        assert not torch.equal(whole, plain), name
        torch.testing.assert_close(run_steps(model, [change]), whole, msg=name)
    assert torch.equal(run(model).logits, plain)  # and nothing stays behind


def test_terms_are_scaled_as_by_hand(model: Seq2Seq) -> None:
    """Each part of each query and key by hand, all nine products, and their sum with factors."""
    site = model.crossing_sites()[-1]
    parts = reference(model).decomposition.site(site)
    factors = (0.0, 1.5, 1.0, 0.3, 2.0, 1.0, -1.0, 0.7, 0.1)
    before, after = run(model).sites[site], run(model, [ScaleTerms(parts, factors)]).sites[site]
    fed = parts.site.shift_words(ONE.inputs.numpy())[0]
    source = ONE.source.numpy()[0]
    for head in range(before.heads):
        q = before.queries[0, head].double().numpy()
        k = before.keys[0, head if before.keys.shape[1] > 1 else 0].double().numpy()
        own, others = parts.head(head)
        if parts.site.lag:  # what was changed before is in later queries: the first row alone
            q, fed = q[:1], fed[:1]
        mine = [own.temporal[: len(q)], own.input[fed]]
        theirs = [others.temporal[: len(k)], others.input[source]]
        mine.append(q - mine[0] - mine[1])
        theirs.append(k - theirs[0] - theirs[1])
        terms = [a @ b.T for a in mine for b in theirs]
        np.testing.assert_allclose(sum(terms), q @ k.T, atol=1e-9)
        wanted = sum(f * term for f, term in zip(factors, terms, strict=True))
        np.testing.assert_allclose(after.scores[0, head, : len(q)], wanted, atol=2e-5)


def test_removing_all_terms_of_a_part_is_removing_the_part() -> None:
    model = build("dot")
    recording = reference(model)
    parts = recording.decomposition.site()
    values = recording.decomposition.heads("attention.values", "encoder")
    without = run(model, [ScaleTerms(parts, (0, 0, 0, 1, 1, 1, 1, 1, 1))])
    removed = run(model, [RemovePart(parts, values, "temporal", "queries")])
    torch.testing.assert_close(without.logits, removed.logits)


def test_a_weight_is_what_it_was_set_to_and_rows_add_up(model: Seq2Seq) -> None:
    site = model.crossing_sites()[-1]
    plain, found = run(model).sites[site], run(model, [SetWeight(site, 2, 1, 0.75)]).sites[site]
    row, old = found.weights[0, :, 2], plain.weights[0, :, 2]
    assert torch.allclose(row[:, 1], torch.tensor(0.75))
    assert torch.allclose(row.sum(dim=1), torch.ones(found.heads))
    torch.testing.assert_close(row[:, 0] / row[:, 2], old[:, 0] / old[:, 2])
    whole = run(model, [SetWeight(site, 2, 1, 1.0)]).sites[site].weights[0, :, 2]
    assert torch.equal(whole[:, 1], torch.ones(found.heads)) and float(whole.sum()) == found.heads


def test_changes_reach_no_further_than_is_said(model: Seq2Seq) -> None:
    """Brute force: what differs at all lies inside of the reach, forced and free."""
    plain = run(model)
    sites = {name: describe_site(site) for name, site in plain.sites.items()}
    for name, change in changes_of(model).items():
        found, reach = run(model, [change]), find_reach(sites, [change], free=False)
        for site, row in reach.items():
            if site == "output":
                a, b = found.logits, plain.logits
            else:
                a, b = found.sites[site].weights[0], plain.sites[site].weights[0]
            until = a.shape[-2] if row is None else row
            assert torch.equal(a[..., :until, :], b[..., :until, :]), (name, site)


def test_words_are_chosen_under_changes_and_where_forced(model: Seq2Seq) -> None:
    change = changes_of(model)["terms"]
    forced = torch.tensor([[-1, 4, -1, 3]])
    sentence = Sentence(ONE.source)
    with steer(model, [change], sentence), torch.no_grad():
        sentence.begin()
        memory = model.encode(ONE.source, ONE.source_lengths)
        words = greedy(model, memory, 6, None, forced, sentence.feed)
    assert words[0, 1] == 4 and words[0, 3] == 3
    same = run(model, [change], Batch(ONE.source, ONE.source_lengths, words, torch.tensor([6])))
    said = same.logits.argmax(dim=2)[0]
    assert all(said[t] == words[0, t] for t in (0, 2, 4, 5))


def test_a_beam_tells_what_it_holds(model: Seq2Seq) -> None:
    memory = model.encode(ONE.source, ONE.source_lengths)
    fed: list[Tensor] = []
    held: list[tuple[Tensor, Tensor, Tensor]] = []
    with torch.no_grad():
        best = beam(model, memory, 5, 3, None, fed.append, lambda *it: held.append(it))
    assert torch.equal(best, beam(model, memory, 5, 3, None))
    words, scores, ending = held[-1]
    assert bool(ending.all()) and torch.equal(words[0, scores[0].argmax()], best[0])
    assert [f.shape for f in fed] == [(3, step + 1) for step in range(5)]
    for row, score in zip(words[0], scores[0], strict=True):  # log p of each, by one forced pass
        batch = Batch(ONE.source, ONE.source_lengths, row[None], torch.tensor([5]))
        chances = run(model, (), batch).logits.log_softmax(dim=2)
        total = chances.gather(2, row[None, :, None]).sum()
        torch.testing.assert_close(total, score, atol=1e-4, rtol=1e-4)


def test_what_does_not_fit_is_refused() -> None:
    model = build("dot")
    parts = reference(model).decomposition.site()
    with pytest.raises(RegardError, match="9 terms"):
        ScaleTerms(parts, (1.0,))
    with pytest.raises(RegardError, match="between 0 and 1"):
        SetWeight("attention", 0, 0, 1.5)
    with pytest.raises(RegardError, match="no place to change"):
        run(model, [RemoveHead("nowhere", 0)])
    with pytest.raises(RegardError, match="no unit 99"):
        run(model, [RemoveUnit("encoder", 99)])
    with pytest.raises(RegardError, match="5 units does not fit"):
        run(model, [PutState("encoder", 0, (1.0,) * 5)])
    with pytest.raises(RegardError, match="component 'time'"):
        RemovePart(parts, (), "time", "queries")
    assert not any(point.watched for point in model.hook_points().values())


def test_where_words_that_are_fed_may_be_others() -> None:
    """Run freely, a change at step 2 may give another word there, which is fed at step 3."""
    sites = {
        "encoder.0.self": Site(query_side="encoder", key_side="encoder"),
        "decoder.0.self": Site(query_side="decoder", key_side="decoder"),
        "decoder.0.cross": Site(query_side="decoder", key_side="encoder"),
    }

    class AtTwo(Change):
        first_step = 2

        def points(self) -> Sequence[str]:
            return ["decoder.0.cross.weights"]

        def apply(self, x: Tensor, at: Any) -> Tensor:
            return x

    forced = {"encoder.0.self": None, "decoder.0.self": None, "decoder.0.cross": 2, "output": 2}
    assert find_reach(sites, [AtTwo()], free=False) == forced
    assert find_reach(sites, [AtTwo()], free=True) == {**forced, "decoder.0.self": 3}
