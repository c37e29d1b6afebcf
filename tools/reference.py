"""Write docs/reference.md from the docstrings: signatures, what they say, examples as code.

python tools/reference.py
"""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
FRONT = (
    "train", "record", "inspect", "timelapse", "reproduce", "claims", "evaluate", "predict",
    "load_run", "list_runs", "load_recording", "Run", "Recording", "Result", "Estimate",
    "RegardError",
)  # fmt: skip
PARTS = {
    "tasks": ("regard.tasks", ("Task", "CorpusTask", "Batch", "Vocabulary")),
    "models": ("regard.models", ("Seq2Seq", "Output", "Cell", "Attention", "greedy", "beam")),
    "runs": ("regard.runs", ("RunConfig", "run_all", "assemble", "execute")),
    "recordings": (
        "regard.recordings",
        ("Decomposition", "Site", "record_arrays", "record_module", "record_model"),
    ),
    "instruments": ("regard.instruments", ("Instrument", "instrument", "Recordings", "Measured")),
    "papers": ("regard.papers", ("Experiment", "Findings", "Claim", "ledger", "load_folder")),
    "display": ("regard.display", ("Figure", "Panel", "Table")),
    "contracts": ("regard.contracts", ("check", "examine_member")),
}


def page() -> str:
    """The whole page."""
    about = "What programs use, from the docstrings. Instruments have"
    parts = ["# Reference", f"{about} [pages of their own](instruments/index.md)."]
    parts.append("## The front: `regard.…`")
    top = import_module("regard")
    parts += [entry(name, getattr(top, name)) for name in FRONT]
    for title, (module, names) in PARTS.items():
        parts.append(f"## {title}: `{module}.…`")
        parts += [entry(name, getattr(import_module(module), name)) for name in names]
    return "\n\n".join(parts) + "\n"


def entry(name: str, thing: Any) -> str:
    """One class or function, with the public methods of a class in a line each."""
    parts = [f"### {name}", f"```text\n{name}{sign(thing)}\n```", show(inspect.getdoc(thing) or "")]
    if inspect.isclass(thing):
        rows = [f"- `{key}`: {first}" for key, first in members(thing)]
        parts += ["\n".join(rows)] if rows else []
    return "\n\n".join(part for part in parts if part)


def sign(thing: Any) -> str:
    """The signature, a parameter a line where it is long."""
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return ""
    text = re.sub(r"<function .*?>", "…", text).replace("'", "")
    return text if len(text) < 80 else re.sub(r", (?=\w+[:=]|\*)", ",\n    ", text)


def members(kind: type) -> list[tuple[str, str]]:
    """Public methods and properties of a class with the first line of what they say."""
    found = []
    for key, value in vars(kind).items():
        text = (
            inspect.getdoc(getattr(value, "__func__", value)) if not key.startswith("_") else None
        )
        usable = callable(value) or isinstance(value, (property, classmethod, staticmethod))
        if text and (usable or hasattr(value, "func")):
            found.append((key, text.splitlines()[0]))
    return found


def show(text: str) -> str:
    """A docstring with its examples as code, without what only tests need."""
    out, code = [], []
    for line in [*text.splitlines(), ""]:
        if re.match(r"\s*(>>>|\.\.\.)", line):
            plain = re.sub(r"\s*# doctest:.*", "", re.sub(r"^\s*(>>>|\.\.\.) ?", "", line))
            code.append(plain)
            continue
        if code:
            out += ["```text", *code, "```"]
            code = []
        out.append(line)
    return "\n".join(out).strip()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
