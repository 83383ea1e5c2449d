"""Runs examples/python/p2p.py as a target and as an initiator."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

import pytest

P2P = pathlib.Path(__file__).resolve().parents[3] / "examples" / "python" / "p2p.py"
ROW = re.compile(r" +(\w+) +(\d+) +([\d.e+]+) +([\d.e+]+)  (\S+ over \w+|\S+)$")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


DRIVER = os.environ.get("VIADUCT_FAKE_CUDA", "")


def start(*flags):
    settings = {"VIADUCT_DETECT": "20s"}  # a busy machine delays heartbeats
    if "--cuda" in flags:
        settings["VIADUCT_CUDA_LIBRARY"] = DRIVER
    return subprocess.Popen([sys.executable, P2P, *map(str, flags)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, **settings})


def run(*flags):
    """Runs one command. Returns its exit code, standard output and standard error."""
    one = start(*flags)
    output, errors = one.communicate(timeout=100)
    return one.returncode, output, errors


@pytest.fixture
def target(request):
    port = free_port()
    one = start("--mode", "target", "--ip", "127.0.0.1", "--port", port,
                *getattr(request, "param", ()))
    try:
        for line in one.stdout:
            if line.startswith("waiting for"):
                break
        else:
            pytest.fail(f"the target ended: {one.stderr.read()}")
        yield one, port
    finally:
        one.kill()
        one.communicate()


def initiator(port, *flags):
    return ("--mode", "initiator", "--ip", "127.0.0.1", "--port", port, *flags)


def test_each_size_has_a_row_with_its_path(target):
    one, port = target
    for operation in ("write", "read"):
        code, output, errors = run(*initiator(port, "--buffer_sizes", "4KB,1MB,1MB",
                                              "--iterations", 20, "--warmup", 2, "--op", operation))
        assert code == 0, errors
        rows = [match.groups() for line in output.splitlines() if (match := ROW.match(line))]
        assert [row[:2] for row in rows] == [("4KB", "20"), ("1MB", "20"), ("1MB", "20")], output
        for size, _, rate, mean, path in rows:
            # Both columns come from one measurement: the rate is the size divided by the mean time.
            in_bytes = {"4KB": 4e3, "1MB": 1e6}[size]
            assert float(rate) == pytest.approx(in_bytes / float(mean) / 1e3, rel=0.02)
            assert path == "local/mapped over memory"
    one.send_signal(signal.SIGINT)
    output, errors = one.communicate(timeout=100)
    assert one.returncode == 0, errors
    assert output.count("has left") == 2


def test_the_row_names_tcp_where_tcp_carried_the_bytes(target, monkeypatch):
    monkeypatch.setenv("VIADUCT_BACKENDS", "tcp")
    code, output, errors = run(*initiator(target[1], "--buffer_sizes", "64KiB", "--iterations", 5))
    assert code == 0, errors
    assert ROW.match(output.splitlines()[-1])[5].startswith("tcp/socket"), output


def test_a_required_path_that_is_not_there_is_an_error(target):
    code, _, errors = run(*initiator(target[1], "--buffer_sizes", "4KB", "--require", "rdma"))
    assert code == 1 and "relax `require`" in errors


def test_a_second_initiator_waits_until_the_first_one_is_dead(target):
    one, port = target
    first = start(*initiator(port, "--buffer_sizes", "4KB", "--iterations", 10**9))
    second = None
    try:
        assert "measures" in one.stdout.readline()
        second = start(*initiator(port, "--buffer_sizes", "4KB", "--timeout", 90))
        for line in second.stderr:
            if "busy with" in line:
                break
        first.kill()
        output, errors = second.communicate(timeout=100)
        assert second.returncode == 0, errors
        assert ROW.match(output.splitlines()[-1])
    finally:
        for process in filter(None, (first, second)):
            process.kill()
            process.communicate()


@pytest.mark.skipif(not os.path.exists(DRIVER), reason="the build has no fake driver")
@pytest.mark.parametrize("target", [(), ("--cuda", "--gpu_id", "1")], indirect=True,
                         ids=["to host memory", "to a GPU"])
def test_buffers_in_memory_of_gpus(target):
    for operation in ("write", "read"):
        code, output, errors = run(*initiator(target[1], "--cuda", "--buffer_sizes", "64KB",
                                              "--iterations", 2, "--op", operation))
        assert code == 0, errors
        assert f"{operation}: memory of GPU 0" in output
        assert re.match(" +64KB .*  cuda/", output.splitlines()[-1])


@pytest.mark.parametrize("flags, told", [
    (("--buffer_sizes", "1XB"), "'1XB' is no size: write 4KB"),
    (("--buffer_sizes", "4KB,,"), "'' is no size"),
    (("--iterations", "0"), "measures nothing"),
])
def test_a_wrong_command_line_is_explained(flags, told):
    code, _, errors = run(*initiator(5555, *flags))
    assert code == 2 and told in errors


def test_nobody_listens_and_the_port_is_in_use(target):
    code, _, errors = run(*initiator(free_port(), "--timeout", 0.5))
    assert code == 1 and "no process listens there: start the target" in errors
    code, _, errors = run("--mode", "target", "--ip", "127.0.0.1", "--port", target[1])
    assert code == 1 and "the port is in use: stop the other target" in errors


def test_the_ends_have_different_secrets(target):
    code, _, errors = run(*initiator(target[1], "--secret", "word", "--timeout", 5))
    assert code == 1 and "wrong secret: give both ends the same --secret" in errors


def test_a_target_drains_on_sigterm(target):
    process, port = target
    one = start(*initiator(port, "--buffer_sizes", "1MB", "--iterations", 10**9))
    for line in process.stdout:
        if line.endswith(" measures\n"):
            break
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0 and output.endswith("drained\n"), output
    _, errors = one.communicate(timeout=100)
    # The signal may come before the target has lent its buffer.
    assert one.returncode == 1 and ("drain" in errors or "no buffer" in errors), errors
