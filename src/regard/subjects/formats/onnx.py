"""`regard.onnx`: ONNX graphs, whose attentions are named by their tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError, unknown
from regard.models.seq2seq import OutputLayer
from regard.subjects.formats._onnx_graph import Graph, Session
from regard.subjects.modules.at import At
from regard.subjects.modules.door import PLACES, ModuleSubject, make_lexicon
from regard.subjects.modules.model import ModuleModel
from regard.tasks.batch import Batch, mask

PAIRS = (("encoder_model.onnx", "decoder_model.onnx"), ("encoder.onnx", "decoder.onnx"))
TOLERANCE = 1e-4


class OnnxModel(ModuleModel):
    """A graph is run as a whole: what passes inside of it is seen and cannot be changed."""

    @contextmanager
    def _changing(self, source: Tensor) -> Iterator[None]:
        watched = [point.name for point in self.hook_points().values() if point.watched]
        if watched:
            raise RegardError(
                f"'{watched[0]}' is inside of an ONNX graph, which runs as a whole: it can be"
                " looked at, but not changed. Instruments that read recordings take it."
            )
        yield

    def blocks(self) -> dict[str, Tensor]:
        """The matrices that the graphs hold."""
        assert isinstance(self.net, Graph)
        return {n: x for session in self.net.sessions for n, x in session.read_matrices().items()}


def onnx(
    model: str | Path,
    decoder: str | Path | None = None,
    *,
    sites: Mapping[str, At] | None = None,
    places: Mapping[str, str] | None = None,
    inputs: Mapping[str, str] | None = None,
    carry: Mapping[str, str] | None = None,
    source_words: Sequence[str] | int | None = None,
    target_words: Sequence[str] | int | None = None,
    specials: Mapping[str, Any] | None = None,
    pieces: str | None = None,
) -> ModuleSubject:
    """An ONNX graph as a subject, run by onnxruntime; needs the extra `onnx`.

    `model` is a file, a folder with `encoder_model.onnx` and `decoder_model.onnx`, or the encoder's
    file beside the `decoder`'s. `sites` names attentions by tensors of the graph (see `at`; weights
    alone are allowed), `places` says which tensors are `encoder.states`, `decoder.states` and
    `logits`; where the last is a matrix product, its input and its matrix are found. `inputs` says
    what each input of a graph is: `source`, `lengths`, `mask`, `fed`, `fed_mask`, or an output of
    the encoder's graph. A decoder that makes one step at a time has `carry`: an input of it, and
    the output that it becomes at the next step. Words as in `module`.

    >>> sites = {"decoder.0.cross": regard.at(weights="/attn/Softmax_output_0", heads=8)}
    >>> subject = regard.onnx("folder", sites=sites)                       # doctest: +SKIP
    """
    sessions = [Session(path) for path in _find_files(Path(model), decoder)]
    faults = [unknown("place", name, PLACES) for name in places or {} if name not in PLACES]
    where = dict(places or {})
    logits = where.pop("logits", None) or _find_logits(sessions[-1])
    states, readout = _find_readout(sessions[-1], logits)
    if states is not None:
        where.setdefault("decoder.states", states)
    if len(sessions) > 1:
        where.setdefault("encoder.states", sessions[0].outputs[0])
    named = [*where.values(), *(t for s in (sites or {}).values() for t in s.places().values())]
    tensors = set().union(*(session.tensors for session in sessions))
    faults += [
        unknown("tensor in the graph", n, sorted(tensors)) for n in named if n not in tensors
    ]
    if faults:
        raise RegardError(*faults)
    once = {t for s in (sites or {}).values() for t in (s.k, s.v) if s.key_side == "encoder" and t}
    graph = Graph(
        sessions, list(dict.fromkeys(named)), inputs or {}, carry or {}, logits,
        {*once, where.get("encoder.states", "")},
    )  # fmt: skip
    fits = states is not None and where["decoder.states"] == states
    network = OnnxModel(graph, _call, where, sites or {}, readout if fits else None)
    words = [
        make_lexicon(given if given is not None else count, specials, pieces, nn.Module(), True)
        for given, count in zip(
            (source_words, target_words), _count_words(graph, sessions), strict=True
        )
    ]
    origin = {"adapter": "onnx", "model": sessions[-1].graph.name or "graph",
              "files": [session.path.name for session in sessions]}  # fmt: skip
    subject = ModuleSubject(network, (words[0], words[1]), origin, network.report)
    network.report |= _compare(graph, subject)
    return subject


def _call(net: nn.Module, batch: Batch) -> Any:
    return net(batch)


def _find_files(model: Path, decoder: str | Path | None) -> list[Path]:
    if decoder is not None:
        return [model, Path(decoder)]
    if not model.is_dir():
        return [model]
    for pair in PAIRS:
        if all((model / name).is_file() for name in pair):
            return [model / name for name in pair]
    found = sorted(model.glob("*.onnx"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "no ONNX file"
        raise RegardError(f"{model} holds {names}. Name the file, or encoder and decoder.")
    return found


def _find_logits(session: Session) -> str:
    if "logits" in session.outputs or len(session.outputs) == 1:
        return "logits" if "logits" in session.outputs else session.outputs[0]
    raise RegardError(
        f"{session.path.name} puts out {', '.join(session.outputs)}. Say which are the logits:"
        " places={'logits': …}."
    )


def _find_readout(session: Session, logits: str) -> tuple[str | None, OutputLayer | None]:
    """The tensor and the matrix whose product the logits are, with a bias where there is one."""
    makers = {name: node for node in session.graph.node for name in node.output}
    held = {tensor.name: tensor for tensor in session.graph.initializer}

    node, bias = makers.get(logits), None
    if node is not None and node.op_type == "Add":
        constants = [name for name in node.input if name in held]
        others = [name for name in node.input if name not in held]
        if len(constants) == 1 and others[0] in makers:
            node, bias = makers[others[0]], session.read(held[constants[0]])
    if node is None or node.op_type != "MatMul" or node.input[1] not in held:
        return None, None
    weight = session.read(held[node.input[1]])
    if weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[1:]):
        return None, None
    return node.input[0], OutputLayer(weight.T.contiguous(), bias, {"state": (0, len(weight))})


def _count_words(graph: Graph, sessions: Sequence[Session]) -> list[int]:
    """Words of both sides: rows of the tables that the graphs look words up in."""
    found = []
    for what in ("source", "fed"):
        counts = [0]
        for session, wanted in zip(sessions, graph.wanted, strict=True):
            shapes = {tensor.name: list(tensor.dims) for tensor in session.graph.initializer}
            words = {name for name, said in wanted.items() if said == what}
            for node in session.graph.node:
                if node.op_type in ("Cast", "Identity", "Reshape") and node.input[0] in words:
                    words |= {*node.output}
                if node.op_type == "Gather" and node.input[1] in words and node.input[0] in shapes:
                    counts.append(shapes[node.input[0]][0])
        found.append(max(counts))
    return found


def _compare(graph: Graph, subject: ModuleSubject) -> dict[str, float | str]:
    """The self-test: logits with and without tensors put out; a sentence alone and padded.

    Where padding changes a sentence's numbers, sentences are not padded.
    """
    least = [len(lexicon) for lexicon in subject.lexicons.values()]
    if not all(least):
        raise RegardError("The graph does not tell how many words there are. Give source_words and"
                          " target_words, as names or counts.")  # fmt: skip
    drawn = torch.Generator().manual_seed(0)
    lengths = torch.tensor([1, 9, 33, 5])
    source = torch.randint(least[0], (4, 33), generator=drawn)
    source[~mask(lengths, 33)] = subject.lexicons["encoder"].pad or 0
    fed = torch.randint(least[1], (4, 12), generator=drawn)
    whole = Batch(source, lengths, fed, torch.full((4,), 12), None, fed)
    heard, plain = graph(whole), graph(whole, plain=True)
    apart = float((heard - plain).abs().max())
    bound = TOLERANCE * max(1.0, float(plain.abs().max()))
    if not apart <= bound:
        raise RegardError(f"The self-test failed: with tensors of the graph put out, its logits are"
                          f" {apart:.2g} off those without.")  # fmt: skip
    worst = 0.0
    for row, length in enumerate(lengths.tolist()):
        one = slice(row, row + 1)
        words = source[one, :length]
        alone = graph(Batch(words, lengths[one], fed[one], torch.tensor([12]), None, fed[one]))
        worst = max(worst, float((alone[0] - heard[row]).abs().max()))
    subject.pads, subject.tried = worst <= bound, frozenset(["source", "target"])
    padding = {} if subject.pads else {"padding": "changes sentences, so that none is padded"}
    return {"logits with and without": apart, "a sentence alone and padded": worst, **padding}
