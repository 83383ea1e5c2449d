"""Runs one command with Viaduct's `nixl` in front of any other.

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
    """This process's environment, with the packages in front of PYTHONPATH."""
    result = dict(os.environ)
    rest = [one for one in result.get("PYTHONPATH", "").split(os.pathsep) if one]
    result["PYTHONPATH"] = os.pathsep.join([str(PACKAGES), *rest])
    return result


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m viaduct.nixl", description=__doc__.splitlines()[0]
    )
    commands = parser.add_subparsers(dest="what", required=True)
    run = commands.add_parser("run", help="run a command over Viaduct")
    run.add_argument("command", nargs=argparse.REMAINDER, help="the command and its arguments")
    commands.add_parser("path", help="print the folder that `run` puts in front of PYTHONPATH")
    flags = parser.parse_args()
    if flags.what == "path":
        print(PACKAGES)
        return 0
    command = flags.command[1:] if flags.command[:1] == ["--"] else flags.command
    if not command:
        run.error("no command; for example: python -m viaduct.nixl run -- vllm serve MODEL")
    # execvp itself would stop at a folder of PATH that may not be read.
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
