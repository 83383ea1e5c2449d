"""Compares the names in the type stubs with the names in the compiled module."""

import ast
import inspect
import pathlib

import pytest
import viaduct
from viaduct import _core, _errors
from viaduct._asyncio import _timeout_position

FOLDER = pathlib.Path(viaduct.__file__).parent
STUB = ast.parse((FOLDER / "_core.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body
           if isinstance(node, ast.ClassDef) and not node.name.startswith("_")}


def members(kind):
    return {name for name in vars(kind) if not name.startswith("_")}


def name_of(item):
    return item.target.id if isinstance(item, ast.AnnAssign) else item.name


def is_attribute(item):
    if isinstance(item, ast.AnnAssign):
        return ast.unparse(item.annotation).startswith("Final[")
    return any(ast.unparse(one) == "property" for one in item.decorator_list)


def test_the_package_says_that_it_is_typed():
    assert (FOLDER / "py.typed").exists()


def test_every_class_and_its_members_are_there():
    compiled = {name for name, value in vars(_core).items()
                if isinstance(value, type) and not name.startswith("_")}
    assert compiled == set(CLASSES)
    for name, node in CLASSES.items():
        told = {name_of(item) for item in node.body if not name_of(item).startswith("_")}
        assert told == members(getattr(_core, name)), name


def test_an_attribute_is_final_or_a_property_and_no_call():
    for name, node in CLASSES.items():
        attributes = {name_of(item) for item in node.body if is_attribute(item)}
        assert attributes == {member for member in members(getattr(_core, name))
                              if not inspect.isroutine(getattr(getattr(_core, name), member))}


def test_methods_have_the_parameters_that_help_shows():
    checked = 0
    for name, node in CLASSES.items():
        for item in node.body:
            if is_attribute(item) or item.name.startswith("_") or item.args.kwarg:
                continue
            member = getattr(getattr(_core, name), item.name)
            told = [each.arg for each in item.args.args + item.args.kwonlyargs]
            has = [each for each in inspect.signature(member).parameters]
            assert [each for each in told if each != "self"] == \
                [each for each in has if each != "self"], f"{name}.{item.name}"
            checked += 1
    assert checked > 25


def test_every_call_that_waits_can_be_awaited():
    checked = 0
    for name, node in CLASSES.items():
        for item in node.body:
            # post() starts a post, and the end of drain()'s timeout changes the agent: no task
            # awaits them.
            if is_attribute(item) or item.name in ("post", "drain"):
                continue
            if "timeout" in [each.arg for each in item.args.args]:
                position = _timeout_position(getattr(_core, name), item.name)
                assert item.args.args[position + 1].arg == "timeout"
                checked += 1
    assert checked > 12


@pytest.mark.parametrize("name", ["post", "drain", "write", "read", "poll", "no_such_call"])
def test_other_calls_cannot_be_awaited(name):
    for kind in (_core.Agent, _core.Transfer):
        with pytest.raises((TypeError, AttributeError)):
            _timeout_position(kind, name)


def test_the_package_has_all_that_its_modules_define():
    functions = {node.name for node in STUB.body if isinstance(node, ast.FunctionDef)}
    errors = {name for name, value in vars(_errors).items()
              if isinstance(value, type) and not name.startswith("_")}
    assert set(viaduct.__all__) == {*CLASSES, *functions, *errors, "__version__", "awaitable"}
    assert len(viaduct.__all__) == len(set(viaduct.__all__))
    assert all(hasattr(viaduct, name) for name in viaduct.__all__)


def test_every_parameter_has_a_name_in_help():
    for name, kind in vars(viaduct).items():
        if not isinstance(kind, type) or kind.__module__ != "viaduct" or issubclass(kind, Exception):
            continue
        for member in members(kind):
            method = getattr(kind, member)
            if inspect.isroutine(method):
                text = str(inspect.signature(method))
                assert "arg0" not in text and "*args" not in text, f"{name}.{member}{text}"


def test_every_class_that_can_be_made_says_how():
    checked = 0
    for name, node in CLASSES.items():
        for item in node.body:
            if getattr(item, "name", "") == "__init__":
                told = [each.arg for each in item.args.args + item.args.kwonlyargs][1:]
                told += [item.args.kwarg.arg] if item.args.kwarg else []
                made = inspect.signature(getattr(_core, name))
                assert list(made.parameters) == told, name
                checked += 1
    assert checked > 6
