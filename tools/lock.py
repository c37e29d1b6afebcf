"""Write the lock files from pyproject.toml: exact versions of everything, named by no index."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

OPTIONS = [
    "--quiet",
    "--strip-extras",
    "--no-header",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-emit-trusted-host",
    "--allow-unsafe",
    "--output-file",
    "-",
]
FIRST = "requirements.lock"  # the others agree with it
LOCKS = {
    FIRST: ["dev", "text"],
    "requirements-docs.lock": ["dev", "docs", "text"],
    "requirements-extras.lock": ["dev", "text", "hf", "onnx", "explorer", "ray", "checks"],
}


def main() -> None:
    """Compile each lock file; local version labels such as +cpu are dropped."""
    for name, extras in LOCKS.items():
        words = [word for extra in extras for word in ("--extra", extra)]
        command = [sys.executable, "-m", "piptools", "compile", *OPTIONS, *words]
        held = ["tools/constraints.txt", *([] if name == FIRST else [FIRST])]
        command += [word for file in held for word in ("--constraint", file)]
        command += ["pyproject.toml", "tools/build.in"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        lines = [line for line in done.stdout.splitlines() if not line.lstrip().startswith("#")]
        pinned = [re.sub(r"\+\w+$", "", line.split(" ")[0]) for line in lines if "==" in line]
        pinned = [line for line in pinned if not line.startswith("pip==")]
        (ROOT / name).write_text("\n".join(sorted(pinned)) + "\n")


if __name__ == "__main__":
    main()
