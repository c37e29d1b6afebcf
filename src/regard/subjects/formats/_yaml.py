"""Settings in YAML: maps in maps, lists, and plain values, which is what programs write there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from regard.errors import RegardError

LINE = re.compile(
    r"""(?P<indent> *)(?P<key>"[^"]*"|'[^']*'|[^\s:#'"\[{-][^:#]*):(?:\s+(?P<value>.*))?$"""
)
ITEM = re.compile(r" *- ?(?P<value>.*)$")
WORDS = {"true": True, "false": False, "yes": True, "no": False, "null": None, "~": None, "": None}


def read_yaml(path: Path) -> dict[str, Any]:
    """The maps of a file; a line that is none of `key: value` and `- value` is an error."""
    if not path.is_file():
        raise RegardError(f"There is no {path.name} in {path.parent}.")
    found: dict[str, Any] = {}
    open_maps: list[tuple[int, dict[str, Any]]] = [(-1, found)]
    last: tuple[dict[str, Any], str] | None = None
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        line = _without_comment(line).rstrip()
        if not line.strip() or line.strip() in ("---", "..."):
            continue
        item, entry = ITEM.fullmatch(line), LINE.fullmatch(line)
        if item and last is not None:
            held, key = last
            held[key] = [*(held[key] if isinstance(held[key], list) else []), _value(item["value"])]
            continue
        if entry is None:
            raise RegardError(f"{path}, line {number} is not `key: value`: {line.strip()[:60]!r}.")
        indent = len(entry["indent"])
        while open_maps[-1][0] >= indent:
            open_maps.pop()
        key, value = entry["key"].strip("\"' "), _value(entry["value"] or "")
        parent = open_maps[-1][1]
        if value is None and not entry["value"]:
            value = {}
            open_maps.append((indent, value))
        parent[key] = value
        last = (parent, key)
    return found


def _without_comment(line: str) -> str:
    """A line up to the first `#` that stands alone and not in quotes."""
    quote = ""
    for at, sign in enumerate(line):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign == "#" and (at == 0 or line[at - 1].isspace()):
            return line[:at]
    return line


def _value(text: str) -> Any:
    """A number, a truth value, a text, or a list of them in brackets."""
    text = text.strip()
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.startswith("[") and text.endswith("]"):
        return [_value(part) for part in text[1:-1].split(",") if part.strip()]
    try:
        return json.loads(text)
    except ValueError:
        return text
