"""Files to begin with: a working member of each kind, and its test."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path

from regard.errors import RegardError, unknown, with_article

TEMPLATES = Path(__file__).parent / "templates"
KINDS = ("task", "cell", "attention", "preset", "instrument", "adapter", "experiment", "plugin")
TRIES = {
    "task": "train {{name}} --model chapter36 updates=200",
    "cell": "train reversal cell={{name}} updates=200",
    "attention": "train reversal attention={{name}} updates=200",
    "preset": "train reversal --model {{name}} updates=200",
    "instrument": "inspect RUN {{module}}",
    "adapter": "inspect FILE.npz sizes",
    "experiment": "reproduce {{module}}",
    "plugin": "ls tasks",
}


@dataclass(frozen=True)
class New:
    """What was written, and what to do with it."""

    files: list[Path]
    commands: list[str]


def write_new(kind: str, name: str, folder: Path) -> New:
    """Write a member and its test into a folder; nothing that is there already is touched."""
    texts = _texts(kind, name)
    paths = {folder / file: text for file, text in texts.items()}
    there = [str(path) for path in paths if path.exists()]
    if there:
        raise RegardError(f"{', '.join(there)} is there already. Choose another name or folder.")
    if folder.exists() and not folder.is_dir():
        raise RegardError(f"{folder} is a file. Give --to a folder.")
    for path, text in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return New(list(paths), _commands(kind, name, folder))


def _texts(kind: str, name: str) -> dict[str, str]:
    """File -> text."""
    if kind not in KINDS:
        raise RegardError(unknown("kind of member", kind, KINDS))
    words = _words(kind, name)
    module = words["module"]
    if kind == "plugin":
        return _plugin(module)
    files = {f"{module}.py": _fill(f"{kind}.py", words), f"test_{module}.py": _test(kind, words)}
    if kind == "experiment":
        files[f"{module}_claims.toml"] = _fill("experiment_claims.toml", words)
    return files


def _plugin(module: str) -> dict[str, str]:
    """A package with a task, an instrument, an experiment with its claim, and their tests."""
    files = {
        f"{module}/pyproject.toml": _fill("pyproject.toml", {"module": module}),
        f"{module}/{module}/__init__.py": _fill("plugin.py", {"module": module}),
    }
    for kind, name in (("task", "task"), ("instrument", "width"), ("experiment", "study")):
        for file, text in _texts(kind, f"{module}_{name}").items():
            if not file.startswith("test_"):
                files[f"{module}/{module}/{file}"] = text
    about = {"module": module, "kind": "plugin", "member": module, "import": module}
    return {**files, f"{module}/tests/test_{module}.py": _fill("test.py", about)}


def _test(kind: str, words: Mapping[str, str]) -> str:
    module = words["module"]
    named = {"instrument": module, "experiment": f"{module}/size"}
    member = named.get(kind, words["name"])
    return _fill("test.py", {**words, "kind": kind, "member": member, "import": module})


def _words(kind: str, name: str) -> dict[str, str]:
    """The name as the member, the module and the class have it."""
    module = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", module) or iskeyword(module):
        raise RegardError(
            f"'{name}' is not a name for {with_article(kind)}: use small letters, digits and"
            " dashes, and begin with a letter."
        )
    _refuse_known(kind, name, module)
    return {
        "name": name.replace("_", "-") if kind == "task" else name,
        "module": module,
        "Class": "".join(part.capitalize() for part in module.split("_")),
    }


def _refuse_known(kind: str, name: str, module: str) -> None:
    """A name that Regard has already would be refused when the file is imported."""
    from regard.contracts.check import find_registries

    registry = find_registries().get(kind)
    for one in {name, module}:
        taken = registry is not None and one not in registry.short and one in registry
        if registry is not None and taken and registry.origin(one) == "regard":
            raise RegardError(f"There is a {kind} '{one}' in Regard. Choose another name.")


def _fill(template: str, words: Mapping[str, str]) -> str:
    """A template with each {{word}} filled in."""
    text = (TEMPLATES / f"{template}.txt").read_text(encoding="utf-8")
    for word, value in words.items():
        text = text.replace("{{" + word + "}}", value)
    return text


def _commands(kind: str, name: str, folder: Path) -> list[str]:
    """What to do next."""
    module = name.replace("-", "_")
    go = [] if folder == Path() else [f"cd {folder}"]
    if kind == "plugin":
        return [*go, f"pip install -e {module}", "regard ls tasks", f"regard check plugin {module}"]
    words = {"name": name.replace("_", "-") if kind == "task" else name, "module": module}
    line = TRIES[kind]
    for word, value in words.items():
        line = line.replace("{{" + word + "}}", value)
    member = {"instrument": module, "experiment": f"{module}/size"}.get(kind, words["name"])
    checked = f"regard --plugin {module} check {kind} {member}"
    return [*go, f"regard --plugin {module} {line}", checked]
