"""Other processes for the tests: programs in Python that talk over their pipes."""

import os
import signal
import subprocess
import sys
import textwrap

LONG = 30  # seconds that nothing here takes, on the busiest machine

SERVER = """
    import sys, viaduct
    with viaduct.Agent(name="server", **eval(sys.argv[1])) as agent:
        inbox = agent.allocate(int(sys.argv[2]), label="inbox")
        print(agent.card.hex(), flush=True)
        for line in sys.stdin:                      # a command, and its answer
            print(repr(eval(line)), flush=True)
"""


class Program:
    """A Python program in a process of its own, ended with the `with` block."""

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
        """Waits for its end. Returns its exit status, and what it printed."""
        output, _ = self.process.communicate(timeout=LONG)
        return self.process.returncode, output


class Server(Program):
    """An agent "server" with the pin "inbox". ask() evaluates an expression there."""

    def __init__(self, *, inbox=1 << 20, **settings):
        super().__init__(SERVER, repr(settings), inbox)
        self.card = bytes.fromhex(self.line())

    def __exit__(self, *rest):
        self.signal(signal.SIGCONT)  # where a test has stopped it
        super().__exit__(*rest)
