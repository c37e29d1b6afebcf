"""The lines of Python that give the numbers of a view through the front door."""

from __future__ import annotations

from regard.explorer import questions as ask
from regard.explorer.changing import read_other
from regard.explorer.look import Look
from regard.explorer.recording_thing import RecordingThing
from regard.explorer.run_thing import RunThing
from regard.explorer.subject_thing import SubjectThing
from regard.explorer.thing import LiveThing
from regard.explorer.views import Views


def write_python(views: Views, question: ask.ExportQuestion, look: Look) -> str:
    """Lines that give the same weights, also under changes."""
    thing = views.things[question.thing]
    if isinstance(thing, RecordingThing):
        where = f"[{question.sample or 0}, {question.head}, :{len(look.said)}]"
        lines = [
            "import regard",
            "",
            f"recording = regard.load_recording({str(thing.path)!r})",
            f"weights = recording[{f'{question.site}.weights'!r}]{where}  # without padding:",
            f"weights = weights[:, :{len(look.source)}]",
        ]
        if not look.sites[question.site].crosses:
            lines = lines[:-1]
        return "\n".join(lines) + "\n"
    live = views.things.live(question.thing)
    lines = [*_open(live, question), *_read(live, question, look)]
    lines += _steer(live, question) if question.changes else _record(live, question)
    return "\n".join(lines) + "\n"


def _open(live: LiveThing, question: ask.ExportQuestion) -> list[str]:
    """What is asked."""
    lines = ["import regard", "from regard.tasks.batch import Batch", "import torch", ""]
    if isinstance(live, RunThing):
        return [*lines, f"run = regard.load_run({str(live.path)!r})"]
    assert isinstance(live, SubjectThing)
    door = str(live.subject.origin.get("adapter", "hugging_face"))
    return [*lines, f"subject = regard.{door}({str(live.path)!r})"]


def _read(live: LiveThing, question: ask.ExportQuestion, look: Look) -> list[str]:
    """The sentence, by the numbers of its words."""
    return [
        f"# source: {question.source!r}",
        f"source = torch.tensor([{look.source.tolist()}])",
        f"said = torch.tensor([{look.said.tolist()}])",
        f"fed = torch.tensor([{look.fed.tolist()}])",
        "lengths = [torch.tensor([words.shape[1]]) for words in (source, said)]",
        "batch = Batch(source, lengths[0], said, lengths[1], fed=fed)",
    ]


def _record(live: LiveThing, question: ask.ExportQuestion) -> list[str]:
    """The model as it is."""
    what = "run" if isinstance(live, RunThing) else "subject"
    when = f", checkpoint={question.checkpoint!r}" if isinstance(live, RunThing) else ""
    return [
        f"recording = regard.record({what}, batches=[batch], inputs='teacher'{when})",
        f"weights = recording[{f'{question.site}.weights'!r}][0, {question.head}]",
    ]


def _steer(live: LiveThing, question: ask.ExportQuestion) -> list[str]:
    """The same under changes."""
    lines = [
        "from regard.instruments.interventions._changes import *",
        "from regard.instruments.interventions._steering import Sentence, steer",
        "",
    ]
    if isinstance(live, RunThing):
        lines += [f"model = run.model({question.checkpoint!r})"]
    else:
        lines += ["model = subject.model"]
    lines += _average(live, question)
    made = []
    for number, one in enumerate(question.changes):
        if isinstance(one, ask.OtherState):
            lines += _other_state(live, question, one, number)
        made.append(_change(one, number))
    return [
        *lines,
        f"changes = [{', '.join(made)}]",
        "sentence = Sentence(batch.source, batch.inputs, reference=whole)",
        "with steer(model, changes, sentence), torch.no_grad():",
        "    sentence.begin()",
        "    output = model(batch.source, batch.source_lengths, batch.inputs)",
        f"weights = output.sites[{question.site!r}].weights[0, {question.head}].numpy()",
    ]


def _average(live: LiveThing, question: ask.ExportQuestion) -> list[str]:
    """The recording that averages are taken over, where a change needs them."""
    if not any(isinstance(one, (ask.Terms, ask.NoPart)) for one in question.changes):
        return ["whole = None"]
    n = len(live.reference(question.checkpoint))
    if isinstance(live, RunThing):
        asked = f"run.record(n={n}, also=('values',), checkpoint={question.checkpoint!r})"
        return [f"whole = {asked}", "parts = whole.decomposition"]
    assert isinstance(live, SubjectThing)
    if live.recording is not None:
        lines = [f"whole = regard.load_recording({str(live.recorded)!r})"]
    else:
        lines = [
            "from regard.explorer.subject_thing import read_sentences",
            "from pathlib import Path",
            f"pairs = read_sentences(Path({str(live.given)!r}), {n})",
            "whole = regard.record(subject, pairs=pairs, also=('values',))",
        ]
    return [*lines, "parts = whole.decomposition"]


def _other_state(
    live: LiveThing, question: ask.ExportQuestion, one: ask.OtherState, number: int
) -> list[str]:
    """A state of another sentence, read off the model where it runs freely."""
    batch = read_other(live, question, one)
    return [
        f"# a state of {one.sentence!r}",
        f"source = torch.tensor({batch.source.tolist()})",
        f"fed = torch.tensor({batch.inputs.tolist()})",
        "with torch.no_grad():",
        "    other = model(source, torch.tensor([source.shape[1]]), fed)",
        f"state_{number} = tuple(other.{one.side}_states[0, {one.other}].tolist())",
    ]


def _change(one: ask.Changed, number: int) -> str:
    """One change as it is written."""
    if isinstance(one, ask.Weight):
        return f"SetWeight({one.site!r}, {one.step}, {one.source}, {one.weight}, {one.head})"
    if isinstance(one, ask.NoHead):
        return f"RemoveHead({one.site!r}, {one.head})"
    if isinstance(one, ask.NoUnit):
        return f"RemoveUnit({one.side!r}, {one.unit})"
    if isinstance(one, ask.Terms):
        return f"ScaleTerms(parts.site({one.site!r}), {one.factors}, {one.head})"
    if isinstance(one, ask.NoPart):
        site = f"parts.site({one.site!r})"
        values = f"parts.heads({f'{one.site}.values'!r}, {site}.site.key_side)"
        mixed = values if one.where == "context" else "()"
        return f"RemovePart({site}, {mixed}, {one.part!r}, {one.where!r})"
    return f"PutState({one.side!r}, {one.step}, state_{number})"
