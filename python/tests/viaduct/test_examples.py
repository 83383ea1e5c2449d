"""Runs each program of examples/python/ with the command that its first lines show."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from helpers import LONG, Server

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "python"


def start(name, *arguments):
    return subprocess.Popen([sys.executable, "-B", EXAMPLES / f"{name}.py", *arguments],
                            stdout=subprocess.PIPE, text=True)


def finish(process):
    output, _ = process.communicate(timeout=3 * LONG)
    assert process.returncode == 0
    return output


def test_two_processes(tmp_path):
    server = start("two_processes", "server", str(tmp_path / "card"))
    client = start("two_processes", "client", str(tmp_path / "card"))
    assert finish(client) == "client: local/mapped 1.0 MiB in 1 op; answer: thank you\n"
    assert finish(server) == 'server: client says "it is full", and the first byte is \'x\'\n'


def test_the_asyncio_server():
    output = finish(start("asyncio_server", "3"))
    assert output == "served 96 pages of 65536 bytes to 3 clients\n"


def test_kv_blocks():
    pytest.importorskip("numpy", reason="python3-numpy is not installed")
    output = finish(start("kv_blocks"))
    assert output.startswith("4 layers of 48 blocks: local/") and " 3.0 MiB in " in output


@pytest.mark.parametrize("program, module", [("python/kv_blocks", "numpy"),
                                             ("torch/collectives", "torch")])
def test_an_example_says_which_package_it_lacks(program, module, tmp_path):
    (tmp_path / f"{module}.py").write_text("raise ImportError")
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    ran = subprocess.run([sys.executable, "-B", ROOT / "examples" / f"{program}.py"], text=True,
                         capture_output=True, env={**os.environ, "PYTHONPATH": path})
    assert ran.returncode == 1 and "pip install" in ran.stderr and "Traceback" not in ran.stderr


def test_the_program_of_the_readme(capsys):
    numpy = pytest.importorskip("numpy", reason="python3-numpy is not installed")
    source, = re.findall("```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names = {}
    exec(source, names)
    with Server(inbox=8 << 20, environment=False) as server:
        names["push"](numpy.full((1024, 4096), 7, "uint8"), server.card)
        assert server.ask("agent.wait_note(30).text") == "'all there'"
        assert server.ask("sum(bytes(inbox)) == 7 << 22") == "True"
    assert " 4.0 MiB in " in capsys.readouterr().out
