"""Text of any origin on a terminal: what would steer it is shown, not obeyed."""

from __future__ import annotations

import re

# Control characters, and those that turn the direction of what follows.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def visible(text: str) -> str:
    """The text with control characters as they are written in Python: `\\x1b`."""
    return STEERING.sub(lambda match: _escape(match[0]), text)


def escape_json(text: str) -> str:
    """JSON with control characters as JSON writes them; it says the same."""
    return STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
