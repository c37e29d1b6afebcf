"""Marian's recurrent models in plain numpy, one sentence and one step at a time.

Written from the published equations and the names that Marian gives its arrays, without anything
of Regard's: Sennrich et al. 2017 (Nematus), Miceli Barone et al. 2017 (deep transitions).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

WORDS = (30, 32)
SIZE, HIDDEN, LOOK = 10, 7, 9
Array = np.ndarray[Any, Any]
DEFAULTS = {
    "type": "s2s", "enc-type": "bidirectional", "enc-cell": "gru", "dec-cell": "gru",
    "enc-depth": 1, "enc-cell-depth": 1, "dec-depth": 1, "dec-cell-base-depth": 2,
    "dec-cell-high-depth": 1, "skip": False, "layer-normalization": False,
    "tied-embeddings": False, "tied-embeddings-all": False, "right-left": False,
}  # fmt: skip


def sigmoid(x: Array) -> Any:
    return 1 / (1 + np.exp(-x))


def norm(x: Array, scale: Array, shift: Array | float = 0.0, epsilon: float = 1e-9) -> Any:
    return (x - x.mean()) / np.sqrt(x.var() + epsilon) * scale + shift


class Marian:
    """A drawn model: `arrays` under the names of the type s2s, `say` what it says."""

    def __init__(self, **said: Any):
        self.said = {**DEFAULTS, **said}
        self.arrays: dict[str, Array] = {}
        self.rng = np.random.default_rng(3)
        self.nematus = self.said["enc-cell"] == "gru-nematus"
        self.norms = self.said["layer-normalization"]
        both, way, deep = self.said["enc-depth"], self.said["enc-type"], self.said["enc-cell-depth"]
        both = 1 if way == "bi-unidirectional" else both
        self.stacks = [
            [[self.cell_name(start, n, m) for m in range(1, deep + 1)] for n in range(1, both + 1)]
            for start in ("encoder_bi", "encoder_bi_r")
        ]
        self.over = [[f"encoder_l{n}_cell{m}" for m in range(1, deep + 1)]
                     for n in range(both + 1, self.said["enc-depth"] + 1)]  # fmt: skip
        high = self.said["dec-cell-high-depth"]
        self.high = [[f"decoder_l{n}_cell{m}" for m in range(1, high + 1)]
                     for n in range(2, self.said["dec-depth"] + 1)]  # fmt: skip
        self.base = [f"decoder_cell{n}" for n in range(1, self.said["dec-cell-base-depth"] + 1)]
        self.memory = HIDDEN if self.over else 2 * HIDDEN
        self.draw()

    @staticmethod
    def cell_name(start: str, layer: int, cell: int) -> str:
        return start + (f"_l{layer}" if layer > 1 else "") + (
            f"_cell{cell}" if layer > 1 or cell > 1 else "")  # fmt: skip

    def add(self, name: str, *shape: int, around: float = 0.0) -> None:
        drawn = around + self.rng.uniform(-0.6, 0.6, shape)
        self.arrays[name] = drawn.astype(np.float32)

    def add_cell(self, name: str, inputs: int) -> None:
        parts = [("U", HIDDEN), *([("W", inputs)] if inputs else [])]
        for part, rows in parts:
            self.add(f"{name}_{part}", rows, 2 * HIDDEN)
            self.add(f"{name}_{part}x", rows, HIDDEN)
        self.add(f"{name}_b", 1, 2 * HIDDEN)
        self.add(f"{name}_bx", 1, HIDDEN)
        if self.norms and self.nematus:
            for part, _ in parts:
                for one, size in ((part, 2 * HIDDEN), (f"{part}x", HIDDEN)):
                    self.add(f"{name}_{one}_lns", 1, size, around=1)
                    self.add(f"{name}_{one}_lnb", 1, size)
        elif self.norms:
            for number in (2, 1)[: len(parts)]:
                self.add(f"{name}_gamma{number}", 1, 3 * HIDDEN, around=1)

    def add_dense(self, name: str, inputs: int, outputs: int, number: str = "") -> None:
        self.add(f"{name}_W{number}", inputs, outputs)
        self.add(f"{name}_b{number}", 1, outputs)
        if self.norms and self.said["type"] == "nematus":
            self.add(f"{name}_ln_s{number}", 1, outputs, around=1)
            self.add(f"{name}_ln_b{number}", 1, outputs)
        elif self.norms:
            self.add(f"{name}_gamma{number}", 1, outputs, around=1)

    def draw(self) -> None:
        for stack in self.stacks:
            for layer, names in enumerate(stack):
                for m, name in enumerate(names):
                    self.add_cell(name, 0 if m else HIDDEN if layer else SIZE)
        for layer, names in enumerate(self.over):
            for m, name in enumerate(names):
                self.add_cell(name, 0 if m else HIDDEN if layer else 2 * HIDDEN)
        for m, name in enumerate(self.base):
            self.add_cell(name, (SIZE, self.memory)[m] if m < 2 else 0)
        for names in self.high:
            for m, name in enumerate(names):
                self.add_cell(name, 0 if m else HIDDEN)
        self.add_dense("decoder_ff_state", self.memory, HIDDEN)
        for number, size in enumerate((SIZE, HIDDEN, self.memory)):
            self.add_dense("decoder_ff_logit_l1", size, SIZE, str(number))
        self.add("decoder_ff_logit_l2_b", 1, WORDS[1])
        self.add("decoder_W_comb_att", HIDDEN, LOOK)
        self.add("decoder_Wc_att", self.memory, LOOK)
        self.add("decoder_b_att", 1, LOOK)
        self.add("decoder_U_att", LOOK, 1)
        if self.norms and self.said["type"] == "nematus":
            for name in ("Wc_att", "W_comb_att"):
                self.add(f"decoder_{name}_lns", 1, LOOK, around=1)
                self.add(f"decoder_{name}_lnb", 1, LOOK)
        elif self.norms:
            self.add("decoder_att_gamma1", 1, LOOK, around=1)
            self.add("decoder_att_gamma2", 1, LOOK, around=1)
        if self.said["tied-embeddings-all"]:
            self.add("Wemb", WORDS[1], SIZE)
            return
        self.add("encoder_Wemb", WORDS[0], SIZE)
        self.add("decoder_Wemb", WORDS[1], SIZE)
        if not self.said["tied-embeddings"]:
            self.add("decoder_ff_logit_l2_W", SIZE, WORDS[1])

    # -- what it does ---------------------------------------------------------------------------
    def __getitem__(self, name: str) -> Array:
        found = self.arrays[name].astype(np.float64)
        return found[0] if found.shape[0] == 1 else found

    def cell(self, name: str, x: Array | None, s: Array) -> Any:
        """r, z = σ(…), h = tanh(xW + r·sU + b), (1 − z)·h + z·s; biases as each kind has them."""
        decoder = name.startswith("decoder")
        final = bool(re.fullmatch(r"decoder_cell([2-9])", name))
        b, bx = self[f"{name}_b"], self[f"{name}_bx"]
        if self.norms and self.nematus:
            eps = 1e-5

            def normed(part: str, y: Array, first: bool) -> Array:
                gates, other = y @ self[f"{name}_{part}"], y @ self[f"{name}_{part}x"]
                if first:
                    gates, other = gates + b, other + bx
                return np.concatenate([
                    norm(gates, self[f"{name}_{part}_lns"], self[f"{name}_{part}_lnb"], eps),
                    norm(other, self[f"{name}_{part}x_lns"], self[f"{name}_{part}x_lnb"], eps),
                ])  # fmt: skip

            xw = np.zeros(3 * HIDDEN) if x is None else normed("W", x, not final)
            su = normed("U", s, decoder and final)
            after = np.zeros(HIDDEN)
            if not decoder and x is None:  # a transition of the encoder: biases after the norm
                su[: 2 * HIDDEN] += b
                after = bx
            gates = sigmoid(xw[: 2 * HIDDEN] + su[: 2 * HIDDEN])
            r, z = gates[:HIDDEN], gates[HIDDEN:]
            h = np.tanh(xw[2 * HIDDEN :] + r * su[2 * HIDDEN :] + after)
            return (1 - z) * h + z * s
        xw = np.zeros(3 * HIDDEN)
        if x is not None:
            xw = np.concatenate([x @ self[f"{name}_W"], x @ self[f"{name}_Wx"]])
            xw = norm(xw, self[f"{name}_gamma1"]) if self.norms else xw
        su = np.concatenate([s @ self[f"{name}_U"], s @ self[f"{name}_Ux"]])
        su = norm(su, self[f"{name}_gamma2"]) if self.norms else su
        gates = sigmoid(xw[: 2 * HIDDEN] + su[: 2 * HIDDEN] + b)
        r, z = gates[:HIDDEN], gates[HIDDEN:]
        if final:
            h = np.tanh(xw[2 * HIDDEN :] + (su[2 * HIDDEN :] + bx) * r)
        else:
            h = np.tanh(xw[2 * HIDDEN :] + su[2 * HIDDEN :] * r + bx)
        return (1 - z) * h + z * s

    def row(self, names: list[str], x: Array, s: Array) -> Array:
        s = self.cell(names[0], x, s)
        for name in names[1:]:
            s = self.cell(name, None, s)
        return s

    def sweep(self, stack: list[list[str]], xs: list[Array], back: bool) -> list[Array]:
        for layer, names in enumerate(stack):
            turned = back != (self.said["enc-type"] == "alternating" and layer % 2 == 1)
            s, out = np.zeros(HIDDEN), []
            for x in reversed(xs) if turned else xs:
                s = self.row(names, x, s)
                out.append(s)
            out = out[::-1] if turned else out
            if self.said["skip"] and layer:
                out = [o + x for o, x in zip(out, xs, strict=True)]
            xs = out
        return xs

    def dense(self, name: str, x: Array, number: str = "") -> Any:
        y, b = x @ self[f"{name}_W{number}"], self[f"{name}_b{number}"]
        if self.norms and self.said["type"] == "nematus":
            return norm(y + b, self[f"{name}_ln_s{number}"], self[f"{name}_ln_b{number}"], 1e-5)
        return norm(y, self[f"{name}_gamma{number}"], b) if self.norms else y + b

    def keys(self, memory: list[Array]) -> list[Array]:
        found, b = [h @ self["decoder_Wc_att"] for h in memory], self["decoder_b_att"]
        if self.norms and self.said["type"] == "nematus":
            scale, shift = self["decoder_Wc_att_lns"], self["decoder_Wc_att_lnb"]
            return [norm(k + b, scale, shift, 1e-5) for k in found]
        if self.norms:
            return [norm(k, self["decoder_att_gamma1"], b) for k in found]
        return [k + b for k in found]

    def query(self, s: Array) -> Any:
        q = s @ self["decoder_W_comb_att"]
        if self.norms and self.said["type"] == "nematus":
            return norm(q, self["decoder_W_comb_att_lns"], self["decoder_W_comb_att_lnb"], 1e-5)
        return norm(q, self["decoder_att_gamma2"]) if self.norms else q

    def table(self, side: str) -> Array:
        return self["Wemb" if self.said["tied-embeddings-all"] else f"{side}_Wemb"]

    def say(self, source: list[int], fed: list[int]) -> tuple[Array, Array]:
        """Logits (target, words) and weights (target, source); the first word has no vector."""
        xs = list(self.table("encoder")[source])
        ways = [self.sweep(stack, xs, bool(n)) for n, stack in enumerate(self.stacks)]
        memory = [np.concatenate(pair) for pair in zip(*ways, strict=True)]
        memory = self.sweep(self.over, memory, False)
        keys, vector = self.keys(memory), self["decoder_U_att"][:, 0]
        states = [np.tanh(self.dense("decoder_ff_state", np.mean(memory, axis=0)))]
        states *= self.said["dec-depth"]
        last = (self["decoder_ff_logit_l2_W"] if "decoder_ff_logit_l2_W" in self.arrays
                else self.table("decoder").T)  # fmt: skip
        logits, weights = [], []
        for step, word in enumerate(fed):
            y = self.table("decoder")[word] * (step > 0)
            s = self.cell(self.base[0], y, states[0])
            scores = np.array([vector @ np.tanh(self.query(s) + key) for key in keys])
            look = np.exp(scores - scores.max())
            look /= look.sum()
            context = sum(w * h for w, h in zip(look, memory, strict=True))
            s = self.cell(self.base[1], context, s)
            for name in self.base[2:]:
                s = self.cell(name, None, s)
            states[0] = out = s
            for layer, names in enumerate(self.high, start=1):
                states[layer] = self.row(names, out, states[layer])
                out = states[layer] + out if self.said["skip"] else states[layer]
            parts = zip("012", (y, out, context), strict=True)
            hidden = np.tanh(sum(self.dense("decoder_ff_logit_l1", x, n) for n, x in parts))
            logits.append(hidden @ last + self["decoder_ff_logit_l2_b"])
            weights.append(look)
        return np.array(logits), np.array(weights)

    # -- what is written ------------------------------------------------------------------------
    def write(self, folder: Path) -> Path:
        folder.mkdir(exist_ok=True, parents=True)
        held = dict(self.arrays)
        if self.said["type"] != "s2s":
            held = {old_name(name): x for name, x in held.items()}
            held["decoder_c_tt"] = np.zeros((1, 0), np.float32)
        said = "".join(f"{k}: {str(v).lower() if isinstance(v, bool) else v}\n"
                       for k, v in self.said.items())  # fmt: skip
        said += f"dim-vocabs:\n  - {WORDS[0]}\n  - {WORDS[1]}\nversion: v1.9.0\n"
        text = np.frombuffer(said.encode() + b"\0", np.int8)
        np.savez(folder / "model.npz", **held, **{"special:model.yml": text})  # type: ignore[arg-type]
        sizes = (WORDS[1],) * 2 if self.said["tied-embeddings-all"] else WORDS
        for side, letter, size in zip(("src", "trg"), "wv", sizes, strict=True):
            words = ["</s>", "<unk>", *(f"{letter}{n}" for n in range(size - 2))]
            lines = [f'"{word}": {n}' for n, word in enumerate(words)]
            (folder / f"vocab.{side}.yml").write_text("\n".join(lines) + "\n")
        return folder


OLD = {
    "decoder_ff_logit_l2_W": "ff_logit_W", "decoder_ff_logit_l2_b": "ff_logit_b",
    "decoder_Wemb": "Wemb_dec", "encoder_Wemb": "Wemb", "decoder_cell2_W": "decoder_Wc",
    "decoder_cell2_Wx": "decoder_Wcx",
    **{f"decoder_ff_logit_l1_{part}{n}": f"ff_logit_{place}_{part}"
       for n, place in enumerate(("prev", "lstm", "ctx")) for part in ("W", "b", "ln_s", "ln_b")},
    **{f"decoder_ff_logit_l1_gamma{n}": f"ff_logit_l1_gamma{n}" for n in range(3)},
    **{f"decoder_ff_state_{part}": f"ff_state_{part}"
       for part in ("W", "b", "gamma", "ln_s", "ln_b")},
    **{f"decoder_cell1_{part}": f"decoder_{part}" for part in ("U", "Ux", "W", "Wx", "b", "bx")},
    **{f"decoder_cell2_{part}": f"decoder_{part}_nl" for part in ("U", "Ux", "b", "bx")},
    **{f"decoder_cell{n + 2}_{part}": f"decoder_{part}_nl_drt_{n}"
       for n in range(1, 4) for part in ("U", "Ux", "b", "bx")},
    **{f"encoder_bi{r}_{part}": f"encoder{r}_{part}"
       for r in ("", "_r") for part in ("U", "Ux", "W", "Wx", "b", "bx", "gamma1", "gamma2")},
    **{f"encoder_bi{r}_cell{n + 1}_{part}": f"encoder{r}_{part}_drt_{n}"
       for r in ("", "_r") for n in range(1, 4) for part in ("U", "Ux", "b", "bx")},
}  # fmt: skip


def old_name(name: str) -> str:
    """What Nematus calls an array, its norms beside it."""
    for end in ("_lns", "_lnb"):
        if name.endswith(end) and name.removesuffix(end) in OLD:
            return OLD[name.removesuffix(end)] + end
    return OLD.get(name, name)


NEMATUS = {"type": "nematus", "enc-cell": "gru-nematus", "dec-cell": "gru-nematus"}
CASES: dict[str, dict[str, Any]] = {
    "s2s": {},
    "s2s-deep": {"enc-cell-depth": 2, "dec-cell-base-depth": 4, "dec-depth": 2,
                 "dec-cell-high-depth": 2, "tied-embeddings": True},
    "s2s-normed": {"layer-normalization": True, "enc-depth": 3, "enc-type": "alternating",
                   "enc-cell-depth": 2, "dec-depth": 3, "dec-cell-base-depth": 3, "skip": True,
                   "tied-embeddings-all": True},
    "s2s-one-way": {"enc-type": "bi-unidirectional", "enc-depth": 3, "enc-cell-depth": 2,
                    "skip": True},
    "s2s-both-ways": {"enc-depth": 2, "skip": True, "layer-normalization": True},
    "s2s-nematus-cells": {"enc-cell": "gru-nematus", "dec-cell": "gru-nematus",
                          "layer-normalization": True, "dec-depth": 2},
    "nematus": {**NEMATUS},
    "nematus-normed": {**NEMATUS, "layer-normalization": True, "enc-cell-depth": 3,
                       "dec-cell-base-depth": 4},
    "amun": {"type": "amun"},
    "amun-normed": {"type": "amun", "layer-normalization": True, "tied-embeddings": True},
}  # fmt: skip
