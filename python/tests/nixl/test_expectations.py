"""Tests what NIXL's own tests, examples and scripts expect, beyond the calls of engines."""

import ctypes
import importlib.metadata
import logging
import os
import subprocess
import sys

import nixl._bindings as b
import pytest
from nixl_testing import Side, finish, run


@pytest.fixture
def compat(monkeypatch):
    monkeypatch.setenv("VIADUCT_NIXL_COMPAT", "1")


IMPROPER = [
    ("get_xfer_descs", [(1, 2, 3, 4)], "DRAM"),
    ("get_xfer_descs", [(1, 2, 3)], None),
    ("get_xfer_descs", b.nixlRegDList(b.DRAM_SEG), None),
    ("get_reg_descs", [(1, 2, 3)], "DRAM"),
    ("get_reg_descs", [(1, 2, 3, "")], None),
    ("get_reg_descs", b.nixlXferDList(b.DRAM_SEG), None),
    ("get_remote_descs", [(1, 2, 3)], "DRAM"),
]


@pytest.mark.parametrize("call,descs,memory", IMPROPER)
def test_improper_descriptors_give_none_on_request(compat, caplog, call, descs, memory):
    agent = Side().agent
    assert getattr(agent, call)(descs, memory) is None
    assert [one.levelno for one in caplog.records] == [logging.ERROR]
    with pytest.raises(KeyError):
        getattr(agent, call)([(1, 2, 3)], "V-RAM")


@pytest.mark.parametrize("call,descs,memory", IMPROPER)
def test_improper_descriptors_raise_otherwise(call, descs, memory):
    with pytest.raises((ValueError, TypeError)):
        getattr(Side().agent, call)(descs, memory)


def test_none_is_serialized():
    agent = Side().agent
    assert agent.deserialize_descs(agent.get_serialized_descs(None)) is None


def test_the_version_of_nixl():
    major, minor = importlib.metadata.version("nixl").split(".")[:2]
    assert (int(major), int(minor)) >= (1, 4)


def test_infinia_is_refused_with_a_reason():
    with pytest.raises(b.nixlNotSupportedError, match="Infinia"):
        Side().agent.create_backend("INFINIA")


def test_the_listener_tells_its_port(caplog):
    with caplog.at_level(logging.DEBUG, "nixl"):
        side = Side(enable_listen_thread=True, listen_port=0)
        port = side.agent.listen_port
        side.agent = None
    assert port != 0
    assert ("nixl._exchange", logging.INFO, f"MD listener is listening on port {port}") in (
        caplog.record_tuples
    )
    assert Side().agent.listen_port == 0


def log_of(setup, **environment):
    program = f"{setup}\nfrom nixl.logging import get_logger\nget_logger('x').info('hello')"
    return subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    ).stderr.splitlines()


def test_the_log_level_makes_the_log_visible():
    assert log_of("") == []
    [line] = log_of("", NIXL_LOG_LEVEL="info")
    assert line.endswith("hello")
    assert log_of("", NIXL_LOG_LEVEL="ERROR") == []
    configured = "import logging; logging.basicConfig(format='mine: %(message)s')"
    assert log_of(configured, NIXL_LOG_LEVEL="INFO") == ["mine: hello"]


# Tests of telemetry files


class Head(ctypes.Structure):
    """The header, as NIXL's reader declares it."""

    _fields_ = [
        ("write_pos", ctypes.c_size_t),
        ("read_pos", ctypes.c_size_t),
        ("version", ctypes.c_uint32),
        ("expected_version", ctypes.c_uint32),
        ("capacity", ctypes.c_size_t),
        ("mask", ctypes.c_size_t),
    ]


class Event(ctypes.Structure):
    _fields_ = [
        ("timestamp_us", ctypes.c_uint64),
        ("category", ctypes.c_int),
        ("event_name", ctypes.c_char * 32),
        ("padding", ctypes.c_uint32),
        ("value", ctypes.c_uint64),
    ]


def events_of(path):
    data = path.read_bytes()
    head = Head.from_buffer_copy(data)
    assert head.version == 1 and head.mask == head.capacity - 1
    assert len(data) == ctypes.sizeof(Head) + head.capacity * ctypes.sizeof(Event)
    ring = (Event * head.capacity).from_buffer_copy(data, ctypes.sizeof(Head))
    return [
        (event.category, event.event_name.decode(), event.value)
        for event in ring[head.read_pos : head.write_pos]
    ]


def copies(side):
    """Copies a block within the agent, and reads it back."""
    local = side.agent.get_xfer_descs(side.blocks(1), "DRAM")
    remote = side.agent.get_xfer_descs(side.blocks(1, first=1), "DRAM")
    for operation in ("WRITE", "READ"):
        run(side.agent, side.agent.initialize_xfer(operation, local, remote, side.name))


def test_telemetry_is_written_for_its_reader(tmp_path, monkeypatch):
    monkeypatch.setenv("NIXL_TELEMETRY_ENABLE", "y")
    monkeypatch.setenv("NIXL_TELEMETRY_DIR", str(tmp_path))
    monkeypatch.setenv("NIXL_TELEMETRY_BUFFER_SIZE", "30")
    side = Side(name="teller")
    copies(side)
    with pytest.raises(b.nixlNotFoundError):
        side.agent.agent.getXferStatus(1 << 40)
    side.agent.deregister_memory(side.registered)
    events = events_of(tmp_path / "teller")
    assert [(category, name) for category, name, _ in events] == [
        (0, "agent_memory_registered"),
        (5, "agent_xfer_post_time"),
        (5, "agent_xfer_time"),
        (1, "agent_tx_bytes"),
        (1, "agent_tx_requests_num"),
        (5, "agent_xfer_post_time"),
        (5, "agent_xfer_time"),
        (1, "agent_rx_bytes"),
        (1, "agent_rx_requests_num"),
        (4, "agent_err_not_found"),
        (0, "agent_memory_deregistered"),
    ]
    values = [value for _, _, value in events]
    assert values[0] == values[-1] == side.memory.size
    assert values[3] == values[7] == 4096
    assert 0 < values[1] <= values[2] and 0 < values[5] <= values[6]


def test_a_full_telemetry_file_loses_later_events(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("NIXL_TELEMETRY_ENABLE", "y")
    monkeypatch.setenv("NIXL_TELEMETRY_DIR", str(tmp_path))
    monkeypatch.setenv("NIXL_TELEMETRY_BUFFER_SIZE", "8")
    side = Side(name="teller")
    for _ in range(3):
        copies(side)
    assert len(events_of(tmp_path / "teller")) == 7
    assert caplog.text.count("dropped") == 1
    Side(name="teller")  # a second agent with this name replaces the file
    assert len(events_of(tmp_path / "teller")) == 1


def test_telemetry_that_cannot_be_written_is_a_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("NIXL_TELEMETRY_ENABLE", "y")
    monkeypatch.setenv("NIXL_TELEMETRY_DIR", str(tmp_path / "nowhere"))
    copies(Side())
    assert "telemetry is not written" in caplog.text
    monkeypatch.setenv("NIXL_TELEMETRY_ENABLE", "n")
    monkeypatch.setenv("NIXL_TELEMETRY_DIR", str(tmp_path))
    copies(Side(capture_telemetry=True))
    assert not list(tmp_path.iterdir())


def test_times_are_never_zero():
    side = Side(capture_telemetry=True)
    local = side.agent.get_xfer_descs([(side.address, 8, 0)], "DRAM")
    remote = side.agent.get_xfer_descs([(side.address + 8, 8, 0)], "DRAM")
    handle = side.agent.initialize_xfer("WRITE", local, remote, side.name)
    for _ in range(200):
        if side.agent.transfer(handle) != "DONE":
            finish(side.agent, handle)
        times = side.agent.get_xfer_telemetry(handle)
        assert 0 < times.postDuration <= times.xferDuration
