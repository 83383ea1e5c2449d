"""Runs one command that imports Viaduct's `nixl` instead of any other package of that name.

    python -m viaduct.nixl run -- vllm serve ...
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import sys

PACKAGES = pathlib.Path(__file__).resolve().parent / "packages"

NOT_FOUND = 127
NOT_RUNNABLE = 126


def environment() -> dict[str, str]:
    """Returns this process's environment with Viaduct's packages in front of PYTHONPATH."""
    result = dict(os.environ)
    rest = [one for one in result.get("PYTHONPATH", "").split(os.pathsep) if one]
    result["PYTHONPATH"] = os.pathsep.join([str(PACKAGES), *rest])
    return result


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m viaduct.nixl", description=__doc__.splitlines()[0]
    )
    commands = parser.add_subparsers(dest="what", required=True)
    run = commands.add_parser("run", help="run a command with Viaduct's `nixl`")
    run.add_argument("command", nargs=argparse.REMAINDER, help="the command and its arguments")
    commands.add_parser("path", help="print the folder that `run` adds to PYTHONPATH")
    flags = parser.parse_args()
    if flags.what == "path":
        print(PACKAGES)
        return 0
    command = flags.command[1:] if flags.command[:1] == ["--"] else flags.command
    if not command:
        run.error("no command; for example: python -m viaduct.nixl run -- vllm serve MODEL")
    # shutil.which() skips unreadable folders of PATH, but execvp would stop at such a folder.
    program = command[0] if os.sep in command[0] else shutil.which(command[0])
    if program is None:
        print(f"viaduct: there is no command {command[0]}", file=sys.stderr)
        return NOT_FOUND
    sys.stdout.flush()
    try:
        os.execve(program, command, environment())
    except FileNotFoundError:
        print(f"viaduct: there is no command {command[0]}", file=sys.stderr)
        return NOT_FOUND
    except OSError as error:
        print(f"viaduct: cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        return NOT_RUNNABLE


if __name__ == "__main__":
    sys.exit(main())
