"""Runs Python programs in other processes. Tests talk to them over stdin and stdout."""

import os
import signal
import subprocess
import sys
import textwrap
import time

LONG = 30  # seconds; a longer wait means that a call hangs, even on a busy machine



def wait_until(done):
    """Polls for something that has no call to wait for it, for LONG at most."""
    until = time.monotonic() + LONG
    while not done() and time.monotonic() < until:
        time.sleep(0.001)


SERVER = """
    import sys, viaduct
    with viaduct.Agent(name="server", **eval(sys.argv[1])) as agent:
        inbox = agent.allocate(int(sys.argv[2]), label="inbox")
        print(agent.card.hex(), flush=True)
        for line in sys.stdin:                      # a command, and its answer
            print(repr(eval(line)), flush=True)
"""


class Program:
    """Runs a Python program in its own process. The end of the `with` block kills the process."""

    def __init__(self, source, *arguments, **options):
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(source), *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def line(self):
        return self.process.stdout.readline().strip()

    def ask(self, expression):
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        return self.line()

    def signal(self, number):
        os.kill(self.process.pid, number)

    def finish(self):
        """Waits until the program ends. Returns its exit status and its output."""
        output, _ = self.process.communicate(timeout=LONG)
        return self.process.returncode, output


class Server(Program):
    """Runs an agent "server" with the pin "inbox". ask() evaluates an expression in its process."""

    def __init__(self, *, inbox=1 << 20, **settings):
        super().__init__(SERVER, repr(settings), inbox)
        self.card = bytes.fromhex(self.line())

    def __exit__(self, *rest):
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)  # in case a test has stopped the process
        super().__exit__(*rest)
