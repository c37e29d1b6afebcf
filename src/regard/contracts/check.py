"""The contract of one member, by its kind and its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.contracts.contract import Check, ContractError, Outcome, examine
from regard.errors import RegardError, unknown
from regard.plugins import name_plugins
from regard.registry import Registry

Settings = dict[str, Any]
Subjects = list[tuple[str, Sequence[Check], Any]]  # what is looked at, by which checks


def examine_member(
    kind: str, name: str, settings: Mapping[str, Any] | None = None, on: Sequence[Path] = ()
) -> list[Outcome]:
    """What came of every check of a member's contract.

    `settings` are those of the task or instrument, or data of the experiment; `on` are runs,
    recordings or files for instruments that are to be put on something else than Regard's own
    small networks.
    """
    if kind not in KINDS:
        raise RegardError(unknown("kind of member", kind, KINDS))
    given = dict(settings or {})
    if on and kind != "instrument":
        raise RegardError("Only an instrument is put on something: leave out --on.")
    if given and kind not in ("task", "instrument", "experiment"):
        raise RegardError(
            f"A {kind} has no settings to be checked with: leave out {', '.join(given)}."
        )
    subjects = KINDS[kind](name, given, on)
    return [
        Outcome(f"{label}: {outcome.check}" if label else outcome.check, outcome.fault)
        for label, checks, subject in subjects
        for outcome in examine(checks, subject)
    ]


def check(kind: str, name: str, **settings: Any) -> None:
    """Raise a `ContractError` that tells every fault of a member; for tests of one's own."""
    faults = [f"{o.check}: {o.fault}" for o in examine_member(kind, name, settings) if o.fault]
    if faults:
        raise ContractError(
            "\n".join([f"The {kind} '{name}' does not keep its contract.", *faults])
        )


def _task(name: str, settings: Settings, on: Sequence[Path]) -> Subjects:
    from regard.contracts.task import CONTRACT, make_task

    return [("", CONTRACT, make_task(name, settings))]


def _cell(name: str, settings: Settings, on: Sequence[Path]) -> Subjects:
    from regard.contracts.cell import CONTRACT, make_cell

    return [("", CONTRACT, make_cell(name))]


def _attention(name: str, settings: Settings, on: Sequence[Path]) -> Subjects:
    from regard.contracts.attention import CONTRACT, make_attentions

    return [(label, CONTRACT, made) for label, made in make_attentions(name)]


def _instrument(name: str, settings: Settings, on: Sequence[Path]) -> Subjects:
    from regard.contracts.instrument import CONTRACT, make_use

    return [("", CONTRACT, make_use(name, settings, on))]


def _experiment(name: str, settings: Settings, on: Sequence[Path]) -> Subjects:
    from regard.contracts.experiment import CONTRACT, make_trial

    return [("", CONTRACT, make_trial(name, settings))]


def _preset(name: str, settings: Settings, on: Sequence[Path]) -> Subjects:
    from regard.contracts.parts import PRESET_CONTRACT
    from regard.runs.presets import PRESETS

    PRESETS[name]  # one that is not there is told at once
    return [("", PRESET_CONTRACT, name)]


def _adapter(name: str, settings: Settings, on: Sequence[Path]) -> Subjects:
    from regard.contracts.parts import ADAPTER_CONTRACT
    from regard.recordings.adapter import ADAPTERS

    ADAPTERS[name]
    return [("", ADAPTER_CONTRACT, name)]


def _plugin(name: str, settings: Settings, on: Sequence[Path]) -> Subjects:
    """All members that a module, or a package with its modules, has registered."""
    members = find_members(name)
    if not members:
        raise RegardError(
            f"The plugin '{name}' has registered nothing. Name its module, as in REGARD_PLUGINS."
        )
    return [
        (f"{kind} {member}" + (f", {label}" if label else ""), checks, subject)
        for kind, member in members
        for label, checks, subject in KINDS[kind](member, {}, ())
    ]


def find_members(module: str) -> list[tuple[str, str]]:
    """Kind and name of each member that comes from a module or package."""
    name_plugins([module])
    return [
        (kind, name)
        for kind, registry in find_registries().items()
        for name in registry
        if f"{registry.origin(name)}.".startswith(f"{module}.")
    ]


def find_registries() -> dict[str, Registry[Any]]:
    """Kind -> the registry of its members."""
    from regard.instruments import INSTRUMENTS
    from regard.models import ATTENTIONS, CELLS
    from regard.papers.framework.experiment import EXPERIMENTS
    from regard.recordings.adapter import ADAPTERS
    from regard.runs.presets import PRESETS
    from regard.tasks import TASKS

    return {
        "task": TASKS, "cell": CELLS, "attention": ATTENTIONS, "preset": PRESETS,
        "instrument": INSTRUMENTS, "adapter": ADAPTERS, "experiment": EXPERIMENTS,
    }  # fmt: skip


KINDS: dict[str, Callable[[str, Settings, Sequence[Path]], Subjects]] = {
    "task": _task, "cell": _cell, "attention": _attention, "preset": _preset,
    "instrument": _instrument, "adapter": _adapter, "experiment": _experiment, "plugin": _plugin,
}  # fmt: skip
