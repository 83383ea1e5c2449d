"""Tests agents: their configuration, plugins and registrations."""

import importlib
import subprocess
import sys
import types
import uuid

import nixl
import nixl._api as api
import nixl._bindings as b
import numpy as np
import pytest
from nixl_testing import Side, meet, run


def test_the_names_that_programs_import():
    for name in (
        "DEFAULT_COMM_PORT nixl_agent nixl_agent_config nixl_backend_handle "
        "nixl_prepped_dlist_handle nixl_xfer_handle nixl_thread_sync_t"
    ).split():
        assert getattr(nixl, name) is getattr(api, name)
    assert api.nixlBind is b
    assert nixl.DEFAULT_COMM_PORT == b.DEFAULT_COMM_PORT == 8888
    assert b.NIXL_INIT_AGENT == "" and b.HAVE_UCX_GPU_DEVICE_API is False
    assert nixl.nixl_backend_handle is int
    assert b.nixlXferTelemetry().totalBytes == 0


def test_errors_are_plain_exceptions():
    names = (
        "NotPosted InvalidParam Backend NotFound Mismatch NotAllowed RepostActive Unknown "
        "NotSupported RemoteDisconnect Cancelled NoTelemetry"
    ).split()
    for name in names:
        assert getattr(b, f"nixl{name}Error").__bases__ == (Exception,)


def test_enums_have_the_numbers_of_nixl():
    names = "DRAM_SEG VRAM_SEG BLK_SEG OBJ_SEG FILE_SEG".split()
    assert [int(getattr(b, name)) for name in names] == [
        0, 1, 2, 3, 4,
    ]  # fmt: skip
    assert (
        int(b.NIXL_IN_PROG) == 1 and int(b.NIXL_SUCCESS) == 0 and int(b.NIXL_ERR_NOT_POSTED) == -1
    )
    assert int(b.NIXL_ERR_REMOTE_DISCONNECT) == -10 and int(b.NIXL_ERR_NO_TELEMETRY) == -12


@pytest.mark.parametrize("name", ["nixl_cu12", "nixl_cu13"])
def test_packages_of_cuda_builds_are_the_same_modules(name):
    package = importlib.import_module(name)
    assert package.nixl_agent is nixl.nixl_agent
    for part in ("_api", "_bindings", "_utils", "logging"):
        assert importlib.import_module(f"{name}.{part}") is importlib.import_module(f"nixl.{part}")


def test_importing_starts_no_thread_and_needs_no_numpy():
    code = (
        "import sys, os, nixl\n"
        "assert 'numpy' not in sys.modules and 'torch' not in sys.modules\n"
        "assert len(os.listdir('/proc/self/task')) == 1, os.listdir('/proc/self/task')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_config_keeps_what_it_is_given():
    config = api.nixl_agent_config()
    assert config.backends == ["UCX"] and config.enable_pthread and not config.enable_listen
    assert config.port == 8888 and not config.capture_telemetry and config.num_threads == 0
    assert config.sync_mode is None
    config = api.nixl_agent_config(
        True, False, 9, True, 3, ["LIBFABRIC"], api.nixl_thread_sync_t.NIXL_THREAD_SYNC_RW
    )
    assert config.backends == ["LIBFABRIC"] and config.port == 9 and config.num_threads == 3
    with pytest.raises(TypeError, match="nixl_thread_sync_t"):
        api.nixl_agent_config(sync_mode="STRICT")
    assert api.nixl_thread_sync_t.NIXL_THREAD_SYNC_RW.value == b.NIXL_THREAD_SYNC_RW


def test_an_agent_without_configuration_has_ucx():
    agent = api.nixl_agent(str(uuid.uuid4()))
    assert list(agent.backends) == ["UCX"] and isinstance(agent.backends["UCX"], int)
    assert agent.backend_mems["UCX"] == agent.get_backend_mem_types("UCX")
    assert "DRAM_SEG" in agent.get_backend_mem_types("UCX")
    assert agent.get_backend_params("UCX") == agent.backend_options["UCX"]
    assert set(agent.nixl_mems) == {"DRAM", "VRAM", "FILE", "BLOCK", "OBJ", "cpu", "cuda"}
    assert set(agent.nixl_ops) == {"READ", "WRITE"}
    assert agent.notifs == {}


def test_instantiate_all_creates_every_plugin(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_BUCKET", "kv")
    agent = api.nixl_agent(str(uuid.uuid4()), instantiate_all=True)
    assert list(agent.backends) == agent.get_plugin_list()
    other = api.nixl_agent(
        str(uuid.uuid4()), api.nixl_agent_config(backends=[]), instantiate_all=True
    )
    assert other.backends == {}


def test_an_agent_needs_a_name():
    with pytest.raises(ValueError, match="name"):
        api.nixl_agent("")
    with pytest.raises(b.nixlInvalidParamError):
        b.nixlAgent("", b.nixlAgentConfig())


def test_a_missing_plugin_is_skipped(caplog):
    agent = api.nixl_agent(str(uuid.uuid4()), api.nixl_agent_config(backends=["HF3FS", "UCX"]))
    assert list(agent.backends) == ["UCX"]
    assert "HF3FS is skipped" in caplog.text


def test_create_backend_takes_strings_and_ignores_the_unknown(caplog):
    agent = api.nixl_agent(str(uuid.uuid4()), api.nixl_agent_config(backends=[]))
    agent.create_backend("UCX", {"num_threads": "8", "magic": "1"})
    assert "magic is unknown" in caplog.text and "num_threads" not in caplog.text
    agent.create_backend("LIBFABRIC")
    assert len(set(agent.backends.values())) == 2


@pytest.mark.parametrize("name", ["AZURE_BLOB", "HF3FS", "GPUNETIO", "3FS"])
def test_create_backend_says_why_a_plugin_is_missing(name):
    agent = api.nixl_agent(str(uuid.uuid4()))
    error = b.nixlNotFoundError if name == "3FS" else b.nixlNotSupportedError
    with pytest.raises(error, match=f"no plugin {name}: .*UCX, LIBFABRIC"):
        agent.create_backend(name)


def test_questions_about_the_unknown_are_warnings(caplog):
    agent = api.nixl_agent(str(uuid.uuid4()))
    assert agent.get_plugin_mem_types("X") == [] and agent.get_plugin_params("X") == {}
    assert agent.get_backend_mem_types("LIBFABRIC") == [] and agent.get_backend_params("X") == {}
    assert caplog.text.count("there is no") == 4
    with pytest.raises(KeyError, match="no backend POSIX"):
        agent.register_memory([], "DRAM", backends=["POSIX"])


def test_methods_go_through_the_agent_that_is_there(monkeypatch):
    made = []
    real = b.nixlAgent
    monkeypatch.setattr(b, "nixlAgent", lambda *a: made.append(a) or real(*a))
    side = Side()
    assert made[0][0] == side.name
    replacement = b.nixlAgent(str(uuid.uuid4()), b.nixlAgentConfig())
    side.agent.agent = replacement
    assert replacement.name.encode() in side.agent.get_agent_metadata()


def test_bindings_work_alone():
    one = b.nixlAgent(str(uuid.uuid4()), b.nixlAgentConfig())
    two = b.nixlAgent(
        str(uuid.uuid4()), b.nixlAgentConfig(True, False, 0, b.NIXL_THREAD_SYNC_STRICT)
    )
    here, there = np.full(64, 9, np.uint8), np.zeros(64, np.uint8)
    one.registerMem(b.nixlRegDList(b.DRAM_SEG, [(here.ctypes.data, 64, 0, "")]), [])
    two.registerMem(b.nixlRegDList(b.DRAM_SEG, [(there.ctypes.data, 64, 0, "")]), [])
    assert one.loadRemoteMD(two.getLocalMD()) == two.name.encode()
    local = b.nixlXferDList(b.DRAM_SEG, [(here.ctypes.data, 64, 0)])
    remote = b.nixlXferDList(b.DRAM_SEG, [(there.ctypes.data, 64, 0)])
    handle = one.createXferReq(b.NIXL_WRITE, local, remote, two.name, "done", [])
    state = one.postXferReq(handle)
    while state == b.NIXL_IN_PROG:
        state = one.getXferStatus(handle)
    assert state == b.NIXL_SUCCESS and (there == 9).all()
    handle_of_backend = one.createBackend("UCX", {"num_threads": "2"})
    assert one.queryXferBackend(handle) == handle_of_backend
    params, memories = one.getBackendParams(handle_of_backend)
    assert isinstance(params, dict) and "DRAM_SEG" in memories
    mutated = {}
    while not (notes := two.getNotifs(mutated, [])):
        pass
    assert notes == {one.name: [b"done"]} and mutated == {}
    one.releaseXferReq(handle)
    with pytest.raises(b.nixlNotFoundError, match="no transfer"):
        one.getXferStatus(handle)
    with pytest.raises(b.nixlInvalidParamError, match="no backend 99"):
        one.getBackendParams(99)


def test_register_returns_the_list_and_deregister_takes_an_equal_one():
    side = Side()
    assert isinstance(side.registered, b.nixlRegDList) and side.registered
    more = np.zeros(4096, np.uint8)
    rows = [(more.ctypes.data, 4096, 0, "")]
    assert side.agent.register_memory(side.agent.get_reg_descs(rows, "cpu")).descCount() == 1
    side.agent.deregister_memory(b.nixlRegDList(b.DRAM_SEG, rows))
    with pytest.raises(b.nixlNotFoundError, match="is not registered"):
        side.agent.deregister_memory(b.nixlRegDList(b.DRAM_SEG, rows))


def test_memory_registered_twice_is_deregistered_twice():
    side = Side()
    side.agent.register_memory(side.registered)
    side.agent.deregister_memory(side.registered)
    side.agent.prep_xfer_dlist("", side.blocks(1), "DRAM")
    side.agent.deregister_memory(side.registered)
    with pytest.raises(b.nixlNotFoundError):
        side.agent.prep_xfer_dlist("", side.blocks(1), "DRAM")


def test_a_failing_registration_registers_nothing():
    side = Side()
    before = side.agent.get_agent_metadata()
    more = np.zeros(4096, np.uint8)
    with pytest.raises(b.nixlInvalidParamError, match="not mapped"):
        side.agent.register_memory([(more.ctypes.data, 4096, 0, ""), (4096, 4096, 0, "")], "DRAM")
    assert side.agent.get_agent_metadata() == before
    with pytest.raises(b.nixlInvalidParamError, match="0 bytes"):
        side.agent.register_memory([(more.ctypes.data, 0, 0, "")], "DRAM")


@pytest.mark.parametrize("kind", ["BLOCK", "FILE", "OBJ"])
def test_kinds_without_a_backend_say_so(kind):
    side = Side()
    with pytest.raises(b.nixlNotSupportedError, match="needs a backend"):
        side.agent.register_memory([(0, 64, 0, "x")], kind)
    with pytest.raises(b.nixlNotSupportedError, match="needs a backend"):
        side.agent.prep_xfer_dlist("", [(0, 64, 0)], kind)


def test_unknown_kinds_are_key_errors():
    side = Side()
    for call in (side.agent.get_xfer_descs, side.agent.get_reg_descs, side.agent.register_memory):
        with pytest.raises(KeyError, match="mem_type vram is unknown"):
            call([(0, 64, 0, "")], "vram")
    with pytest.raises(ValueError, match="mem_type is missing"):
        side.agent.get_xfer_descs([(0, 64, 0)])


def test_lists_of_another_type_are_refused():
    side = Side()
    with pytest.raises(TypeError, match="nixlRegDList.*nixlXferDList"):
        side.agent.get_xfer_descs(side.registered)
    with pytest.raises(TypeError, match="nixlXferDList.*nixlRegDList"):
        side.agent.get_reg_descs(side.registered.trim())
    remote = side.agent.get_remote_descs([(1, 2, 0, "B")], "DRAM")
    assert isinstance(remote, b.nixlRemoteDList)
    assert side.agent.get_xfer_descs(side.registered.trim()) == side.registered.trim()


class Tensor:
    """Imitates a tensor, with only the methods that the package calls."""

    def __init__(self, address, elements, device="cpu", index=0, contiguous=True):
        self.address, self.elements, self.contiguous, self.index = (
            address,
            elements,
            contiguous,
            index,
        )
        self.device = types.SimpleNamespace(type=device, index=index)

    def data_ptr(self):
        return self.address

    def numel(self):
        return self.elements

    def element_size(self):
        return 4

    def is_contiguous(self):
        return self.contiguous

    def get_device(self):
        return -1 if self.device.type == "cpu" else self.index


def test_tensors_become_rows():
    side = Side()
    one, two = Tensor(side.address, 16), Tensor(side.address + 64, 4)
    assert list(side.agent.get_xfer_descs(one)) == [(side.address, 64, 0)]
    assert list(side.agent.get_xfer_descs([one, two])) == [
        (side.address, 64, 0),
        (side.address + 64, 16, 0),
    ]
    assert list(side.agent.get_reg_descs([one], "VRAM")) == [(side.address, 64, 0, b"")]
    assert side.agent.get_xfer_descs([Tensor(5, 1, "cuda", 3)]) == b.nixlXferDList(
        b.VRAM_SEG, [(5, 4, 3)]
    )
    with pytest.raises(ValueError, match="contiguous"):
        side.agent.get_xfer_descs([Tensor(1, 1, contiguous=False)])
    with pytest.raises(ValueError, match="different devices"):
        side.agent.get_xfer_descs([one, Tensor(1, 1, "cuda")])
    side.agent.deregister_memory(side.agent.register_memory([two]))


def test_tensors_of_torch():
    torch = pytest.importorskip("torch", reason="no torch (package python3-torch)")
    side, other = Side(), Side()
    source = torch.arange(4096, dtype=torch.float32).reshape(64, 64)
    target = torch.zeros(2, 64, 64)
    side.agent.register_memory(source)
    other.agent.register_memory([target])
    side.agent.add_remote_agent(other.agent.get_agent_metadata())
    here = side.agent.get_xfer_descs([source, source[:1]])
    there = side.agent.get_xfer_descs([target[1], target[0, :1]])
    run(side.agent, side.agent.initialize_xfer("WRITE", here, there, other.name))
    assert torch.equal(target[1], source) and torch.equal(target[0, 0], source[0])
    assert not target[0, 1:].any()
    with pytest.raises(ValueError, match="contiguous"):
        side.agent.get_xfer_descs(source.t())
    picks = torch.tensor([1, 0])
    local = side.agent.prep_xfer_dlist("", here)
    handle = side.agent.make_prepped_xfer("READ", local, picks[:1], local_of(side, source), [0])
    run(side.agent, handle)
    assert torch.equal(source[0], source[1]) and source[0, 0] == 64


def local_of(side, tensor):
    """Prepares a list of one row of the tensor, for a copy within the agent."""
    return side.agent.prep_xfer_dlist(side.name, side.agent.get_xfer_descs(tensor[1:2]))


class Array:
    """Imitates an array of a library that supports DLPack but not the buffer protocol."""

    def __init__(self, of, device=(1, 0)):
        self.of, self.device, self.nbytes = of, device, of.nbytes

    def __dlpack__(self, **how):
        return self.of.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.device


def test_arrays_of_dlpack_become_rows():
    side = Side()
    memory = np.zeros((4, 1024), np.float32)
    row = (memory.ctypes.data, memory.nbytes, 0)
    assert list(side.agent.get_xfer_descs([Array(memory)])) == [row]
    assert list(side.agent.get_reg_descs(Array(memory))) == [(*row, b"")]
    side.agent.deregister_memory(side.agent.register_memory(Array(memory)))
    with pytest.raises(ValueError, match="gaps"):
        side.agent.get_xfer_descs(Array(memory[:, ::2]))
    with pytest.raises(TypeError, match="device 10 of DLPack"):
        side.agent.get_xfer_descs(Array(memory, (10, 0)))
    on_gpu = Array(memory, (2, 3))
    on_gpu.__cuda_array_interface__ = {"data": (5, False), "strides": None}
    assert side.agent.get_xfer_descs(on_gpu) == b.nixlXferDList(b.VRAM_SEG, [(5, memory.nbytes, 3)])
    with pytest.raises(ValueError, match=r"different devices \(cpu, cuda\)"):
        side.agent.get_xfer_descs([Array(memory), on_gpu])
    on_gpu.__cuda_array_interface__["strides"] = (8,)
    with pytest.raises(ValueError, match="contiguous"):
        side.agent.get_xfer_descs(on_gpu)


def test_a_single_tensor_with_a_kind():
    side = Side()
    one = Tensor(side.address, 16)
    assert list(side.agent.get_xfer_descs(one, "DRAM")) == [(side.address, 64, 0)]


def test_query_memory_needs_a_backend_with_names():
    side = Side()
    with pytest.raises(ValueError, match="no backend OBJ"):
        side.agent.query_memory([(0, 0, 0, "key")], "OBJ", "OBJ")
    with pytest.raises(b.nixlNotSupportedError):
        side.agent.query_memory([(0, 0, 0, "key")], "UCX", "OBJ")


def test_what_needs_a_gpu_is_refused():
    side = Side()
    with pytest.raises(b.nixlNotSupportedError):
        side.agent.prep_mem_view(side.registered.trim())
    with pytest.raises(b.nixlNotSupportedError):
        side.agent.release_mem_view(1)


def test_thousands_of_small_neighbours():
    side, other = Side(size=1 << 24), Side(size=1 << 24, fill=3)
    pages = [(other.address + i * 4096, 4096, 0, "") for i in range(4096)]
    other.agent.deregister_memory(other.registered)
    registered = other.agent.register_memory(pages, "DRAM")
    blob = other.agent.get_agent_metadata()
    assert len(blob) <= 1024 + 40 * len(pages)
    meet(side, other)
    local = side.agent.prep_xfer_dlist("", side.blocks(4096), "DRAM")
    remote = side.agent.prep_xfer_dlist(other.name, [row[:3] for row in pages], "DRAM")
    handle = side.agent.make_prepped_xfer("READ", local, range(4096), remote, range(4096))
    run(side.agent, handle)
    assert (side.memory == 3).all()
    other.agent.deregister_memory(registered)
    assert len(other.agent.get_agent_metadata()) <= 1024


def test_utilities():
    from nixl import _utils

    one, two = _utils.malloc_passthru(5000), _utils.malloc_passthru(5000)
    assert one % 4096 == 0
    _utils.ba_buf(one, 5000)
    _utils.ba_buf(two, 4999)
    with pytest.raises(AssertionError, match="differ"):
        # Makes the last bytes of the two buffers differ.
        _utils.ba_buf(two + 4999, 1)
        np.ctypeslib.as_array((__import__("ctypes").c_ubyte * 5000).from_address(two))[4999] = 0
        _utils.verify_transfer(one, two, 5000)
    _utils.verify_transfer(one, two, 4999)
    _utils.free_passthru(one)
    _utils.free_passthru(two)


def test_loggers(monkeypatch):
    from nixl.logging import get_logger

    assert get_logger("nixl.x").name == "nixl.x"
    assert get_logger("vllm").name == "nixl.vllm"
    assert get_logger().name == "nixl"


def test_telemetry_variable_says_no(monkeypatch):
    monkeypatch.setenv("NIXL_TELEMETRY_ENABLE", "no")
    side = Side(capture_telemetry=True)
    local = side.agent.prep_xfer_dlist("", side.blocks(1), "DRAM")
    remote = side.agent.prep_xfer_dlist(side.name, side.blocks(1, first=1), "DRAM")
    handle = side.agent.make_prepped_xfer("WRITE", local, [0], remote, [0])
    run(side.agent, handle)
    with pytest.raises(b.nixlNoTelemetryError):
        side.agent.get_xfer_telemetry(handle)
