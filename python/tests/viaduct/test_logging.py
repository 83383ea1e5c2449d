"""Tests that the library's log lines reach Python's logging."""

import logging
import subprocess
import sys

import pytest
from helpers import LONG, Server, wait_until

import viaduct


def await_line(caplog, text):
    wait_until(lambda: text in caplog.text)
    return [record for record in caplog.records if text in record.getMessage()]


@pytest.fixture
def level():
    """Yields the logger. Restores its level, and the library's."""
    logger = logging.getLogger("viaduct")
    yield logger
    logger.setLevel(logging.NOTSET)
    viaduct.Agent(environment=False).close()


def test_a_lost_peer_is_a_warning(caplog):
    settings = {"backends": "tcp", "environment": False}
    with viaduct.Agent(name="client", **settings) as agent, Server(**settings) as server:
        peer = agent.connect(server.card)
        peer.ready(LONG)
        server.process.kill()
        (record,) = await_line(caplog, "peer server lost")
        assert (record.name, record.levelno) == ("viaduct", logging.WARNING)
        assert "viaduct[" not in record.getMessage()


def test_the_level_of_the_logger_is_that_of_the_library(caplog, level, monkeypatch):
    monkeypatch.delenv("VIADUCT_LOG", raising=False)
    level.setLevel(logging.INFO)
    with viaduct.Agent(name="here", environment=False) as agent:
        agent.self().ready(LONG)
        assert await_line(caplog, "is ready")[0].levelno == logging.INFO
    level.setLevel(logging.ERROR)
    caplog.clear()
    with viaduct.Agent(name="here", environment=False) as agent:
        agent.self().ready(LONG)
    assert "is ready" not in caplog.text


def program(setup):
    code = f"""
import logging, viaduct
{setup}
with viaduct.Agent(name="here", environment=False) as agent:
    agent.self().ready(30)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONG)
    assert ran.returncode == 0, ran.stderr
    return ran.stderr


def test_without_a_handler_lines_go_to_stderr():
    assert "info: peer here is ready" in program("logging.getLogger('viaduct').setLevel('INFO')")


def test_a_handler_takes_the_lines():
    assert "INFO:viaduct:peer here is ready" in program("logging.basicConfig(level='INFO')")
