"""Settings as words of a command: `key=value`."""

from __future__ import annotations


def parse(settings: list[str]) -> tuple[dict[str, str], list[str]]:
    """`key=value` words as a mapping, and the faults of those that are not."""
    values: dict[str, str] = {}
    faults = []
    for word in settings:
        key, equals, value = word.partition("=")
        if not key or not equals:
            faults.append(f"'{word}' is not a setting: write key=value.")
        elif key in values:
            faults.append(f"The key '{key}' is given twice.")
        else:
            values[key] = value
    return values, faults
