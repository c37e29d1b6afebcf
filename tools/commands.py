"""Write a page per command into docs/commands/, from what the commands say of themselves.

python tools/commands.py
"""

from pathlib import Path
from typing import Any

import typer

from regard.cli.main import app

PAGES = Path(__file__).resolve().parent.parent / "docs" / "commands"
HEAD = """# Commands

`regard COMMAND --help` says the same in a terminal. Listings take `--json`; faults are told in a
sentence each, all at once, with exit code 2. `regard --plugin MODULE COMMAND …` and
`REGARD_PLUGINS=module,…` add members of your own.

| command | what it does |
|---|---|
"""


def pages() -> dict[str, str]:
    """File -> text, of every command that is shown."""
    group: Any = typer.main.get_command(app)
    shown = {name: command for name, command in group.commands.items() if not command.hidden}
    rows = [f"| [{name}]({name}.md) | {first_line(command)} |" for name, command in shown.items()]
    index = HEAD + "\n".join(rows) + "\n"
    return {"index.md": index, **{f"{name}.md": page(name, c) for name, c in shown.items()}}


def first_line(command: Any) -> str:
    """What a command does, in a sentence."""
    return str(command.help or "").strip().splitlines()[0]


def page(name: str, command: Any) -> str:
    """One command: what it does, an example, its arguments and options."""
    example = str(command.epilog or "").removeprefix("Example: ")
    kinds = {"Arguments": "argument", "Options": "option"}
    parts = [f"# regard {name}", first_line(command), f"```\n{example}\n```"]
    for title, kind in kinds.items():
        rows = [row(p) for p in command.params if p.param_type_name == kind and p.name != "help"]
        if rows:
            parts.append(f"## {title}\n| name | meaning |\n|---|---|\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def row(parameter: Any) -> str:
    """One argument or option."""
    names = parameter.opts if parameter.param_type_name == "option" else [parameter.name.upper()]
    default = parameter.default
    plain = default is not None and not callable(default) and default not in ((), [], False, "")
    told = f" Default: `{default}`." if plain and "efault" not in str(parameter.help) else ""
    text = f"{parameter.help or ''}{told}".replace("|", "\\|")
    return f"| `{', '.join(names)}` | {text} |"


if __name__ == "__main__":
    PAGES.mkdir(parents=True, exist_ok=True)
    for file, text in pages().items():
        (PAGES / file).write_text(text, encoding="utf-8")
