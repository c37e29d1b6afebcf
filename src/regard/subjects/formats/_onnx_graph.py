"""ONNX graphs run by onnxruntime, with tensors inside of them as places that can be heard."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.errors import RegardError, unknown
from regard.tasks.batch import Batch, mask

Array = NDArray[Any]
Values = dict[str, Array]
KINDS = {"int64": np.int64, "int32": np.int32, "float": np.float32, "bool": np.bool_,
         "float16": np.float16, "double": np.float64}  # fmt: skip
FOLDER = "session.model_external_initializers_file_folder_path"
# What inputs of exported models are called, and what of a batch they are.
USUAL = {
    "input_ids": "source", "source": "source", "src": "source", "attention_mask": "mask",
    "decoder_input_ids": "fed", "target": "fed", "tgt": "fed", "encoder_attention_mask": "mask",
    "decoder_attention_mask": "fed_mask", "source_lengths": "lengths", "src_lengths": "lengths",
}  # fmt: skip
PAST = ("past_key_values", "past.", "use_cache_branch", "cache_position")
GIVEN = ("source", "lengths", "mask", "fed", "fed_mask")


def load_extra() -> tuple[Any, Any]:
    """The two packages of the extra `onnx`."""
    try:
        import onnx
        import onnxruntime
    except ImportError:
        raise RegardError(
            "ONNX graphs need the packages onnx and onnxruntime: pip install 'regard[onnx]'."
        ) from None
    return onnx, onnxruntime


class Session:
    """One file: the graph as data, and a session that also puts out tensors inside of it."""

    def __init__(self, path: Path):
        self.onnx, self.runtime = load_extra()
        self.path = path
        if not path.is_file():
            raise RegardError(f"There is no {path}. Name an ONNX file, or a folder with some.")
        try:
            self.model = self.onnx.load(str(path), load_external_data=False)
        except Exception as error:  # a file from anywhere fails in any way
            raise RegardError(f"{path} is not an ONNX file ({type(error).__name__}).") from None
        self.graph = self.model.graph
        self.outputs = [value.name for value in self.graph.output]
        self.tensors = {name for node in self.graph.node for name in node.output if name}
        held = {tensor.name for tensor in self.graph.initializer}
        self.inputs = [value.name for value in self.graph.input if value.name not in held]
        self.plain = self.session = self._open(self.model)
        self.kinds = {
            value.name: (_kind(value.type), len(value.shape)) for value in self.plain.get_inputs()
        }

    def _open(self, model: Any) -> Any:
        options = self.runtime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = torch.get_num_threads()
        options.add_session_config_entry(FOLDER, str(self.path.parent.resolve()))
        try:
            return self.runtime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # whatever the runtime finds
            raise RegardError(f"onnxruntime cannot run {self.path} ({error}).") from None

    def read(self, tensor: Any) -> Tensor:
        """A constant of the graph as single precision."""
        held = self.onnx.numpy_helper.to_array(tensor, str(self.path.parent))
        return torch.from_numpy(held.astype(np.float32))

    def read_matrices(self) -> dict[str, Tensor]:
        """All constants with two axes, by name."""
        floats = (self.onnx.TensorProto.FLOAT, self.onnx.TensorProto.FLOAT16)
        held = self.graph.initializer
        return {t.name: self.read(t) for t in held if len(t.dims) == 2 and t.data_type in floats}

    def put_out(self, names: Sequence[str]) -> None:
        """From now on these tensors are outputs, too."""
        self.extra = [name for name in dict.fromkeys(names) if name in self.tensors]
        model = self.onnx.ModelProto()
        model.CopyFrom(self.model)
        for name in self.extra:
            if name not in self.outputs:
                model.graph.output.append(self.onnx.ValueInfoProto(name=name))
        self.session = self._open(model)

    def run(self, values: Mapping[str, Array], plain: bool = False) -> Values:
        """All outputs by name, of what each input is to be."""
        fed = {name: _fit(values[name], *self.kinds[name]) for name in self.inputs}
        session = self.plain if plain else self.session
        names = [value.name for value in session.get_outputs()]
        return dict(zip(names, session.run(names, fed), strict=True))


class Graph(nn.Module):
    """One file, or an encoder's and a decoder's, as a module; each named tensor is a submodule.

    With `carry`, from inputs of the decoder to outputs of it, the decoder is run step by step.
    """

    def __init__(
        self,
        sessions: Sequence[Session],
        named: Sequence[str],
        inputs: Mapping[str, str],
        carry: Mapping[str, str],
        logits: str,
        once: Collection[str] = (),
    ):
        super().__init__()
        self.sessions, self.carry, self.logits = list(sessions), dict(carry), logits
        self.once = {*once}  # tensors of the source, which are the same at every step
        self.wanted = [self._choose(session, inputs) for session in sessions]
        for session in sessions:
            session.put_out([*named, logits, *carry.values()])
        for name in named:
            self._modules[name] = nn.Identity()  # names have dots, which add_module refuses

    def _choose(self, session: Session, inputs: Mapping[str, str]) -> dict[str, str]:
        """What each input of a graph is."""
        first, found, faults = session is self.sessions[0], {}, []
        states = self.sessions[0].outputs
        _refuse_past(session, inputs)
        for name in session.inputs:
            what = inputs.get(name) or USUAL.get(name)
            if name == "input_ids" and not first and name not in inputs:
                what = "fed"
            if what is None and name in ("encoder_hidden_states", "memory") and not first:
                what = states[0]
            if what is None or what not in (*GIVEN, *([] if first else states)):
                faults.append(
                    f"{session.path.name} has an input '{name}', and nobody says what it is. Give"
                    f" inputs={{'{name}': …}}: one of {', '.join(GIVEN)}"
                    + ("." if first else f", or an output of the encoder: {', '.join(states)}.")
                )
            else:
                found[name] = what
        if faults:
            raise RegardError(*faults)
        return found

    def forward(self, batch: Batch, plain: bool = False) -> Tensor:
        """Logits (batch, target, words); what the named tensors are passes their submodules."""
        known: Values = {
            "source": batch.source.numpy(),
            "lengths": batch.source_lengths.numpy(),
            "mask": mask(batch.source_lengths, batch.source.shape[1]).numpy(),
            "fed": batch.inputs.numpy(),
            "fed_mask": np.ones(batch.inputs.shape, np.bool_),
        }
        if len(self.sessions) > 1:
            known |= self._run(0, known, plain)
        if not self.carry:
            return torch.from_numpy(self._run(-1, known, plain)[self.logits]).float()
        return self._walk(batch, known, plain)

    def _walk(self, batch: Batch, known: Values, plain: bool) -> Tensor:
        """The decoder step by step; its tensors are heard when all steps are made."""
        state = {name: known[self.wanted[-1][name]] for name in self.carry}
        steps: list[Values] = []
        for step in range(batch.inputs.shape[1]):
            now = {**known, "fed": batch.inputs[:, step : step + 1].numpy(), **state}
            wanted = {**self.wanted[-1], **{name: name for name in self.carry}}
            steps.append(self.sessions[-1].run({n: now[w] for n, w in wanted.items()}, plain))
            state = {name: steps[-1][source] for name, source in self.carry.items()}
        names = [name for name in steps[0] if name in self._modules or name == self.logits]
        joined = {n: steps[0][n] if n in self.once else _join([s[n] for s in steps]) for n in names}
        self._tell(joined, plain)
        return torch.from_numpy(joined[self.logits]).float()

    def _run(self, number: int, known: Values, plain: bool) -> Values:
        session, wanted = self.sessions[number], self.wanted[number]
        out = session.run({name: known[what] for name, what in wanted.items()}, plain)
        self._tell(out, plain)
        return out

    def _tell(self, values: Values, plain: bool) -> None:
        """Let every named tensor pass its submodule, where it is heard."""
        for name, value in values.items():
            if name in self._modules and not plain:
                self._modules[name](torch.from_numpy(value).float())  # type: ignore[misc]


def _refuse_past(session: Session, inputs: Mapping[str, str]) -> None:
    """A decoder with a cache shows the keys of one step, and not what it kept before."""
    past = [n for n in session.inputs if n.startswith(PAST) and n not in inputs]
    if past:
        raise RegardError(
            f"{session.path.name} keeps a past: it has {len(past)} inputs such as '{past[0]}'."
            " Export the decoder without a cache (mostly decoder_model.onnx, neither"
            " decoder_with_past_model.onnx nor decoder_model_merged.onnx), so that one pass shows"
            " all steps."
        )


def _join(steps: Sequence[Array]) -> Array:
    """Single steps (batch, …), (batch, 1, …) or (batch, head, 1, …) as one tensor over all."""
    if steps[0].ndim == 2:
        return np.stack(steps, axis=1)
    axis = 2 if steps[0].ndim == 4 else 1
    if any(value.shape[axis] != 1 for value in steps):
        raise RegardError(
            f"A tensor of a decoder that makes one step has the shape {steps[-1].shape}: more than"
            " one step. Name queries, weights and states of the step, keys of the source."
        )
    return np.concatenate(steps, axis=axis)


def _kind(text: str) -> Any:
    """The type of an input: `tensor(int64)`."""
    name = text.removeprefix("tensor(").removesuffix(")")
    if name not in KINDS:
        raise RegardError(unknown("type of ONNX inputs", name, KINDS))
    return KINDS[name]


def _fit(value: Array, kind: Any, rank: int) -> Array:
    """A value as an input wants it; one word per row may be without its axis of time."""
    if value.ndim == rank + 1 and value.shape[1] == 1:
        value = value[:, 0]
    return np.ascontiguousarray(value.astype(kind))
