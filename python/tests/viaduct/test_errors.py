"""Tests the classes and fields of the exceptions."""

import builtins
import pickle

import pytest

import viaduct


def test_each_code_has_a_class():
    kinds = {kind.code: kind for kind in viaduct.Error.__subclasses__()}
    assert len(kinds) == 13 and all(kind.__module__ == "viaduct" for kind in kinds.values())


def test_errors_are_those_of_python_too():
    assert issubclass(viaduct.InvalidError, ValueError)
    assert issubclass(viaduct.NotFoundError, LookupError)
    assert issubclass(viaduct.DeniedError, PermissionError)
    assert issubclass(viaduct.TimeoutError, builtins.TimeoutError)
    assert issubclass(viaduct.PeerLostError, ConnectionError)
    assert issubclass(viaduct.DeviceError, OSError)


def test_an_error_has_the_fields_of_the_library(agent):
    with pytest.raises(viaduct.NotFoundError) as raised:
        agent.peer("nobody")
    error = raised.value
    assert (error.code, error.operation, error.peer) == ("not found", "peer", "nobody")
    assert error.detail in str(error) and error.remedy in str(error)
    assert (error.os_errno, error.device, error.file, error.cause) == (0, "", "", "")


@pytest.mark.parametrize("kind", viaduct.Error.__subclasses__(), ids=lambda kind: kind.__name__)
def test_errors_pickle(kind):
    error = kind("all of it", operation="connect", detail="refused", os_errno=111, peer="b",
                 device="eth0", file="/dev/x", cause="nobody listens", remedy="start it")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == "all of it" and vars(again) == vars(error)
    if issubclass(kind, OSError):
        assert again.errno == 111
