"""The command line: one app, and what becomes of faults."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from regard.errors import RegardError, in_words, out_of_memory
from regard.plugins import RegardWarning, name_plugins

# As `regard --help` lists them. Each is a file here: a function of that name, and an EXAMPLE.
# They import what they need when they are called, so that help comes at once.
COMMANDS = (
    "ls", "train", "record", "inspect", "explore", "timelapse", "swap", "prune", "reproduce",
    "claims", "report", "demo", "new", "check", "doctor", "bench",
)  # fmt: skip

app = typer.Typer(
    name="regard",
    help="A laboratory for encoder-decoder networks: train one, look inside, check the papers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name in COMMANDS:
    module = import_module(f"regard.cli.{name}")
    app.command(name, epilog=f"Example: {module.EXAMPLE}", hidden=getattr(module, "HIDDEN", False))(
        getattr(module, name)
    )


def _print_version(wanted: bool) -> None:
    if wanted:
        from regard import __version__

        print(f"regard {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            help="A module of yours that adds members; may be given repeatedly."
            " Also: REGARD_PLUGINS=module,…"
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    if plugin:
        name_plugins(plugin)


def _tell(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """A warning of Regard's as a sentence; all others are for those who write programs."""
    if issubclass(category, RegardWarning):
        print(f"regard: {message}", file=sys.stderr)
    else:
        print(f"{category.__name__}: {message}", file=sys.stderr)


def main() -> None:
    """The console script. Faults in what was asked are told in plain words, with exit code 2."""
    warnings.showwarning = _tell
    try:
        app()
    except RegardError as error:
        _refuse(*error.faults)
    except OSError as error:
        _refuse(in_words(error))
    except (MemoryError, RuntimeError) as error:
        if not (fault := out_of_memory(error)):
            raise
        _refuse(fault)


def _refuse(*faults: str) -> NoReturn:
    from regard.display.escaping import visible

    for fault in faults:
        print(f"regard: {visible(fault)}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
