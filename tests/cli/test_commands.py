"""One file per command."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from command import Command

import regard.cli
from regard.cli.main import COMMANDS, app

FOLDER = Path(regard.cli.__file__).parent
FILES = {path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_")} - {"main"}


def test_every_public_file_is_a_command_of_that_name() -> None:
    click = typer.main.get_command(app)
    assert set(click.commands) == FILES == set(COMMANDS)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(regard: Command, name: str) -> None:
    done = regard(name, "--help")
    assert done.returncode == 0 and f"Example: regard {name}" in done.stdout


def test_help_lists_what_can_be_used(regard: Command) -> None:
    listed = regard("--help").stdout
    assert "timelapse" in listed and "bench" not in listed
    done = regard("bench", "training", "--json")
    assert done.returncode == 2 and "python -m benchmarks NAME" in done.stderr


def test_version(regard: Command) -> None:
    done = regard("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"regard {version('regard')}\n", "")
