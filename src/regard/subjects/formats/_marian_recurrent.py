"""Recurrent models of Marian: which arrays of a file go where (types `s2s`, `nematus`, `amun`)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.layers.attention import Additive
from regard.subjects.formats._conditional import (
    Conditional,
    ConditionalDecoder,
    ConditionalParts,
    DeepOutput,
)
from regard.subjects.formats._conditional_parts import Dense, Norm, NormedGRU, TwoStacks
from regard.subjects.formats._fill import Array, Arrays
from regard.subjects.formats._torch_layers import refuse_settings

TYPES = ("s2s", "nematus", "amun")
EPSILON, NEMATUS = 1e-9, 1e-5  # of Marian's own normalisation, and of Nematus'
KNOWN = {
    "enc-type": ("bidirectional", "bi-unidirectional", "alternating"),
    "enc-cell": ("gru", "gru-nematus"),
    "dec-cell": ("gru", "gru-nematus"),
    "right-left": ("false",),
    "dec-attention-heads": ("1",),
    "dec-attention-hops": ("1",),
    "dec-attention-bilinear-lookup": ("false",),
    "dec-attention-projection-dim": ("-1",),
}
LEFT_OUT = ("decoder_c_tt", "uidx", "history_errs")  # no part of the model
CELL = r"(U|Ux|W|Wx|b|bx)"
NORMS = r"((?:_lns|_lnb)?)"
PLACES = {"prev": 0, "lstm": 1, "ctx": 2}  # what the output network reads, in Nematus' words


def rename(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays that `nematus` and `amun` keep under Nematus' names, by those of `s2s`."""
    return {_rename(name): array for name, array in arrays.items() if name not in LEFT_OUT}


def _rename(name: str) -> str:
    if found := re.fullmatch(rf"encoder(_r|)_{CELL}(?:_drt_(\d+))?{NORMS}", name):
        back, part, deep, norm = found.groups()
        cell = f"_cell{int(deep) + 1}" if deep else ""
        return f"encoder_bi{back}{cell}_{part}{norm}"
    if found := re.fullmatch(rf"decoder_{CELL}(_nl|)(?:_drt_(\d+))?{NORMS}", name):
        part, second, deep, norm = found.groups()
        return f"decoder_cell{1 + bool(second) + int(deep or 0)}_{part}{norm}"
    if found := re.fullmatch(rf"decoder_Wc(x|){NORMS}", name):
        return "decoder_cell2_W{}{}".format(*found.groups())
    if found := re.fullmatch(r"ff_logit_(prev|lstm|ctx)_(W|b|ln_s|ln_b)", name):
        return f"decoder_ff_logit_l1_{found[2]}{PLACES[found[1]]}"
    if found := re.fullmatch(r"encoder(_r|)_(gamma[12])", name):
        return "encoder_bi{}_{}".format(*found.groups())
    if found := re.fullmatch(r"ff_logit_(W|Wt|b)", name):
        return f"decoder_ff_logit_l2_{found[1]}"
    if name.startswith(("ff_state_", "ff_logit_l1_")):
        return f"decoder_{name}"
    return "decoder_Wemb" if name == "Wemb_dec" else name


def build_recurrent(held: Arrays, said: Mapping[str, str]) -> ConditionalDecoder:
    """The model that the arrays are of."""
    refuse_settings(held.where, said, KNOWN)
    encoder, memory = _encoder(held, said)
    base = int(said.get("dec-cell-base-depth", 2))
    if base < 2:
        raise RegardError(f"{held.where} has a decoder that does not attend (its base has {base}"
                          " cell), which is not known here.")  # fmt: skip
    nematus = said.get("dec-cell", "gru") == "gru-nematus"
    after = [_cell(held, f"decoder_cell{n}", nematus, final=True) for n in range(3, base + 1)]
    reads = _cell(held, "decoder_cell2", nematus, final=True, after=after)
    first = Conditional(_cell(held, "decoder_cell1", nematus), reads)
    high = int(said.get("dec-cell-high-depth", 1))
    higher = [
        _stack(held, [f"decoder_l{n}_cell{m}" for m in range(1, high + 1)], nematus, True)
        for n in range(2, int(said.get("dec-depth", 1)) + 1)
    ]
    tables = _tables(held)
    return ConditionalDecoder(
        ConditionalParts(
            tables, encoder, _dense(held, "decoder_ff_state"), first, higher,
            _attention(held, first.asks.hidden, memory), _readout(held, tables[1]),
            said.get("skip") == "true",
        )
    )  # fmt: skip


def _encoder(held: Arrays, said: Mapping[str, str]) -> tuple[TwoStacks, int]:
    """The encoder, and the size of its states."""
    way, depth = said.get("enc-type", "bidirectional"), int(said.get("enc-depth", 1))
    nematus, deep = said.get("enc-cell", "gru") == "gru-nematus", int(said.get("enc-cell-depth", 1))
    both = 1 if way == "bi-unidirectional" else depth
    stacks: dict[str, list[NormedGRU]] = {}
    for start in ("encoder_bi", "encoder_bi_r"):
        stacks[start] = []
        for n in range(1, both + 1):
            layer = f"{start}_l{n}" if n > 1 else start
            names = [f"{layer}_cell{m}" if n > 1 or m > 1 else layer for m in range(1, deep + 1)]
            stacks[start].append(_stack(held, names, nematus))
    for n in range(both + 1, depth + 1):
        names = [f"encoder_l{n}_cell{m}" for m in range(1, deep + 1)]
        stacks["encoder_bi"].append(_stack(held, names, nematus, True))
    ahead, back = stacks.values()
    made = TwoStacks(ahead, back, way, said.get("skip") == "true")
    return made, ahead[-1].hidden * (2 if len(back) == len(ahead) else 1)


def _stack(held: Arrays, names: list[str], nematus: bool, unmarked: bool = False) -> NormedGRU:
    """A cell and the cells without an input after it; `unmarked`: where Marian does not say so."""
    if nematus and unmarked and len(names) > 1:
        raise RegardError(f"{held.where} has gru-nematus cells in a row at '{names[0]}', which"
                          " Marian itself does not run.")  # fmt: skip
    return _cell(held, names[0], nematus, after=[_cell(held, n, nematus) for n in names[1:]])


def _cell(
    held: Arrays, name: str, nematus: bool, final: bool = False,
    after: list[NormedGRU] | None = None,
) -> NormedGRU:  # fmt: skip
    """One GRU. Marian keeps the gates' matrices (W, reset then update) and the candidate's (Wx)
    apart. In a `final` cell the reset gate acts on the candidate's bias, too.
    """
    driven = f"{name}_W" in held
    into = _beside(held, name, "W") if driven else None
    inner, bias = _beside(held, name, "U"), _beside(held, name, "b")
    hidden = inner.shape[0]
    cell = NormedGRU(0 if into is None else into.shape[0], hidden, after or ())
    outer, inside = bias.clone(), torch.zeros_like(bias)
    if final:
        outer[2 * hidden :], inside[2 * hidden :] = 0, bias[2 * hidden :]
    if f"{name}_gamma2" in held:
        cell.norm_hh = _norm([3 * hidden], EPSILON, held.take(f"{name}_gamma2"), inside)
        inside = torch.zeros_like(inside)
        if driven:
            cell.norm_ih = _norm([3 * hidden], EPSILON, held.take(f"{name}_gamma1"), outer)
            outer = torch.zeros_like(outer)
    elif f"{name}_U_lns" in held:
        cell.norm_hh = _norm([2 * hidden, hidden], NEMATUS, *_learned(held, name, "U"))
        if driven:
            cell.norm_ih = _norm([2 * hidden, hidden], NEMATUS, *_learned(held, name, "W"))
        # Biases are within the norms: the state's in the decoder's later cells, else the input's.
        outer, inside = (inside * 0, bias) if final else (bias, inside * 0)
    with torch.no_grad():
        cell.weight_hh.copy_(inner.T)
        if into is not None:
            cell.weight_ih.copy_(into.T)
        cell.bias_ih.copy_(outer)
        cell.bias_hh.copy_(inside)
    return cell


def _beside(held: Arrays, name: str, part: str, end: str = "") -> Tensor:
    """What is the gates', and what is the candidate's, as one: (…, 3 · hidden)."""
    found = [held.take(f"{name}_{one}{end}") for one in (part, f"{part}x")]
    if part == "b" or end:
        found = [x.flatten() for x in found]
    return torch.cat(found, dim=-1)


def _learned(held: Arrays, name: str, part: str) -> tuple[Tensor, Tensor]:
    return _beside(held, name, part, "_lns"), _beside(held, name, part, "_lnb")


def _norm(sizes: list[int], epsilon: float, scale: Tensor, shift: Tensor | None) -> Norm:
    made = Norm(sizes, epsilon)
    with torch.no_grad():
        made.weight.copy_(scale.flatten())
        if shift is not None:
            made.bias.copy_(shift.flatten())
    return made


def _map(held: Arrays, weight: str, bias: str | None, own: str, nematus: tuple[str, str]) -> Dense:
    """A linear map, normalised as Marian does it (a scale, `own`), as Nematus does it, or not."""
    matrix = held.take(weight)
    shift = None if bias is None else held.take(bias).flatten()
    made = Dense(*matrix.shape)
    if own in held:  # the bias comes after the norm
        made.norm = _norm([made.out_features], EPSILON, held.take(own), shift)
        shift = None
    elif nematus[0] in held:
        made.norm = _norm([made.out_features], NEMATUS, *(held.take(n) for n in nematus))
    with torch.no_grad():
        made.weight.copy_(matrix.T)
        made.bias.zero_() if shift is None else made.bias.copy_(shift)
    return made


def _dense(held: Arrays, name: str, number: str = "") -> Dense:
    return _map(held, f"{name}_W{number}", f"{name}_b{number}", f"{name}_gamma{number}",
                (f"{name}_ln_s{number}", f"{name}_ln_b{number}"))  # fmt: skip


def _attention(held: Arrays, hidden: int, memory: int) -> Additive:
    """v · tanh(Q s + K h + b); the bias is the keys'."""
    query, key = "decoder_W_comb_att", "decoder_Wc_att"
    made = Additive(hidden, 1, held.table(query)[1], "sum", memory)
    made.query = _map(held, query, None, "decoder_att_gamma2", (f"{query}_lns", f"{query}_lnb"))
    made.key = _map(held, key, "decoder_b_att", "decoder_att_gamma1",
                    (f"{key}_lns", f"{key}_lnb"))  # fmt: skip
    made.v.data = held.take("decoder_U_att").T
    return made


def _readout(held: Arrays, table: Tensor) -> DeepOutput:
    """The output network; its last matrix is kept either way round, or is the words' vectors."""
    name = "decoder_ff_logit_l2"
    word, state, context = (_dense(held, "decoder_ff_logit_l1", number) for number in "012")
    weight = table
    if f"{name}_W" in held:
        weight = held.take(f"{name}_W").T
    elif f"{name}_Wt" in held:
        weight = held.take(f"{name}_Wt")
    last = nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        last.weight.copy_(weight)
    held.fill(last.bias, f"{name}_b")
    return DeepOutput(word, state, context, last)


def _tables(held: Arrays) -> tuple[Tensor, Tensor]:
    """The words' vectors of both sides, which may be the same."""
    source = "encoder_Wemb" if "encoder_Wemb" in held else "Wemb"
    target = "decoder_Wemb" if "decoder_Wemb" in held else source
    return held.take(source), held.take(target)
