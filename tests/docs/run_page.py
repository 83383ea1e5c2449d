#!/usr/bin/env python3
"""Runs the commands of a page in order, and compares the output that the page shows with theirs.

usage: run_page.py PAGE PROGRAM

`viaduct` in a command is PROGRAM. A comment in the line above a block says what the block is:

<!-- file NAME -->                      save the block under this name
<!-- terminal NAME -->                  sh: type the block in this terminal, and wait until it has ended
<!-- terminal NAME, left running -->    sh: do not wait. A later step may kill the program
<!-- terminal NAME prints -->           output of the last block of this terminal
<!-- figures vary -->                   output of the last block of all, whose numbers may be others

The last two stand together as <!-- terminal NAME prints, figures vary -->. A page with one terminal names none.
The lines of an output appear in this order, and others may stand between them. `...` in a line is any text.
Each block that is not left running ends with exit code 0. The clean-up at the end of the page leaves an empty folder.

The page runs in namespaces of its own. exit: 0 passed; 1 failed; 77 skipped, with the reason
"""
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_docs  # noqa: E402

TOOLS = ("curl", "ip", "openssl", "tc", "unshare")  # of the pages and of this file
LONGEST = 100.0  # seconds for one step
END = re.compile(r"\x1e(\d+)\n")
FIGURE = re.compile(r"[<>~+-]?\d[\d.,]*%?|\bnone\b")
NAMESPACES = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--net", "--mount",
              "--pid", "--fork", "--kill-child", "--mount-proc"]


class Failure(Exception):
    """A step did not do what the page says."""


class Terminal:
    """A shell, and the output of the last block that was typed into it."""

    def __init__(self, folder):
        self.shell = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, cwd=folder, start_new_session=True)
        self.block, self.left_running, self.output, self.ended = None, False, "", True

    def close(self):
        """Ends the shell and all that it has started."""
        os.killpg(self.shell.pid, signal.SIGKILL)
        self.shell.wait()
        self.shell.stdin.close()
        self.shell.stdout.close()

    def type(self, block, left_running):
        self.finish()
        self.block, self.left_running, self.output, self.ended = block, left_running, "", False
        self.shell.stdin.write(f"{{\n{block}}} </dev/null\nprintf '\\036%d\\n' $?\n".encode())
        self.shell.stdin.flush()

    def read(self, end, missing="no end"):
        """Reads some output. The block has ended once its exit code has been read."""
        if not select.select([self.shell.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
            raise Failure(f"{missing} after {LONGEST:.0f} s:\n{self.block}It printed:\n{self.output}")
        more = os.read(self.shell.stdout.fileno(), 65536).decode(errors="replace")
        self.output += more
        code = END.search(self.output)
        if not more or (code and code[1] != "0" and not self.left_running):
            raise Failure(f"exit code {code[1] if code else 'of the shell'}:\n{self.block}It printed:\n{self.output}")
        self.ended = code is not None

    def finish(self):
        end = time.monotonic() + LONGEST
        while not self.ended:
            self.read(end)

    def expect(self, lines, figures_vary):
        """Waits until the output has these lines."""
        end = time.monotonic() + LONGEST
        while (absent := first_absent(lines, self.output, figures_vary)) is not None:
            if self.ended:
                raise Failure(f"no line '{absent}' in the output of\n{self.block}It printed:\n{self.output}")
            self.read(end, f"no line '{absent}'")


def pattern(line, figures_vary):
    """A regular expression for a line of output."""
    def word(text):
        if figures_vary and (figure := FIGURE.search(text)):
            return word(text[:figure.start()]) + f"(?:{FIGURE.pattern}|-)" + word(text[figure.end():])
        return re.escape(text)
    return r"\s+".join(".*".join(map(word, one.split("..."))) for one in line.split())


def first_absent(lines, output, figures_vary):
    """The first of these lines that does not come after the ones before it."""
    printed = iter(output.splitlines())
    for line in lines:
        wanted = re.compile(pattern(line, figures_vary))
        if line.strip() != "..." and not any(wanted.fullmatch(one.strip()) for one in printed):
            return line
    return None


def steps(page, folder, terminals):
    last = ""
    for block in check_docs.blocks(page.read_text()):
        words = re.fullmatch(r"terminal (\w+)(, left running| prints)?(?:, )?(figures vary)?", block.note)
        name = words[1] if words else last
        if block.note.startswith("file "):
            (folder / block.note.removeprefix("file ")).write_text(block.text)
        elif block.language == "sh":
            last = name
            terminal = terminals[name] = terminals.get(name) or Terminal(folder)
            terminal.type(block.text, left_running=bool(words) and words[2] == ", left running")
            if not terminal.left_running:
                terminal.finish()
        elif not block.is_code:
            terminals[name].expect(block.text.splitlines(), block.note.endswith("figures vary"))
        else:
            raise Failure(f"line {block.line}: a block of {block.language} without a comment that says what to do")
    for terminal in terminals.values():
        terminal.finish()


def run(page, folder):
    terminals = {}
    try:
        steps(page, folder, terminals)
    finally:
        for terminal in terminals.values():
            terminal.close()
    if left := sorted(one.name for one in folder.iterdir()):
        raise Failure(f"the clean-up leaves {', '.join(left)}")


def inside(page, program):
    """In the namespaces: /run and the loopback interface are new, as those of a machine that just started."""
    subprocess.run(["mount", "-t", "tmpfs", "run", "/run"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as programs:
        os.symlink(program, f"{programs}/viaduct")
        os.symlink(sys.executable, f"{programs}/python3")  # the one that has the package
        for name in [one for one in os.environ if one.startswith("VIADUCT_")]:
            del os.environ[name]
        os.environ["PATH"] = f"{programs}:{os.environ['PATH']}:/usr/sbin:/sbin"
        try:
            run(page, pathlib.Path(folder))
        except Failure as failure:
            print(f"{page.name}: {failure}")
            return 1
    return 0


def main():
    page, program = pathlib.Path(sys.argv[1]), os.path.abspath(sys.argv[2])
    if len(sys.argv) > 3:
        return inside(page, program)
    if absent := [tool for tool in TOOLS if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]:
        print(f"skipped: no {' and no '.join(absent)}")
        return 77
    if subprocess.run([*NAMESPACES, "true"], capture_output=True).returncode != 0:
        print("skipped: no right to make namespaces")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return subprocess.run([*NAMESPACES, sys.executable, "-B", __file__, str(page), program, "inside"]).returncode


if __name__ == "__main__":
    sys.exit(main())
