"""Tests the build backend: wheels, sdists and error texts. The tests compile nothing."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(SOURCE / "python" / "build_backend"))
import compile_module
import viaduct_build


@pytest.fixture
def build_folder():
    """Returns the folder BUILD. The installation under test is in BUILD/python/tests/installed."""
    installed = os.environ.get("VIADUCT_PYTHON_INSTALLED")
    if installed is None:
        pytest.skip("VIADUCT_PYTHON_INSTALLED names no installation; ctest sets it")
    return pathlib.Path(installed).parents[2]


def pip(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "pip", *arguments],
        env={
            **os.environ,
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def names_in(wheel):
    with zipfile.ZipFile(wheel) as files:
        return set(files.namelist())


def test_pip_builds_the_wheel_from_a_clone_without_a_network(build_folder, tmp_path):
    ran = pip(
        "wheel", "--no-index", "--wheel-dir", tmp_path, SOURCE, VIADUCT_BUILD_DIR=str(build_folder)
    )
    assert ran.returncode == 0, ran.stdout
    [wheel] = tmp_path.glob("viaduct-*.whl")
    [ours] = build_folder.glob("python/tests/installed.wheels/viaduct-*.whl")
    assert names_in(wheel) == names_in(ours)


def test_pip_builds_viaduct_nixl_from_a_clone(tmp_path):
    ran = pip(
        "wheel", "--no-index", "--no-deps", "--wheel-dir", tmp_path, SOURCE / "python" / "nixl"
    )
    assert ran.returncode == 0, ran.stdout
    [wheel] = tmp_path.glob("viaduct_nixl-1.4.0+viaduct.*-py3-none-any.whl")
    assert {
        "nixl/__init__.py",
        "nixl/_api.py",
        "nixl_cu12/__init__.py",
        "nixl_cu13/__init__.py",
    } <= names_in(wheel)


def test_an_editable_install_is_refused_in_words(tmp_path):
    ran = pip("install", "--no-index", "--target", tmp_path, "--editable", SOURCE)
    assert ran.returncode != 0
    assert "editable installs are not supported" in ran.stdout
    assert "Traceback" not in ran.stdout


def test_a_folder_without_a_module_is_named(tmp_path):
    with pytest.raises(
        viaduct_build.BuildError,
        match=f"there is no {tmp_path}.*_core.*Build the target viaduct_python",
    ):
        viaduct_build.Viaduct().compiled(SOURCE, {"build-dir": str(tmp_path)})


def test_missing_headers_are_named_with_their_packages(tmp_path, monkeypatch):
    blind = tmp_path / "blind-compiler"
    blind.write_text("#!/bin/sh\nexit 1\n")
    blind.chmod(0o755)
    monkeypatch.setenv("CXX", str(blind))
    with pytest.raises(compile_module.BuildError) as raised:
        compile_module.check_packages(compile_module.TargetPython())
    for word in (
        "pybind11/pybind11.h",
        "fmt/format.h",
        "openssl/hmac.h",
        "Python.h",
        "apt-get install",
    ):
        assert word in str(raised.value)
    for package in ("pybind11-dev", "libfmt-dev", "libssl-dev", "python3-dev"):
        assert package in str(raised.value)


def test_a_missing_compiler_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", str(tmp_path / "no-compiler"))
    with pytest.raises(
        compile_module.BuildError, match="there is no .*no-compiler.*apt-get install.*g\\+\\+"
    ):
        compile_module.check_packages(compile_module.TargetPython())


def test_a_missing_program_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", shutil.which("c++"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(compile_module.BuildError, match="lacks .*cmake.*apt-get install .*cmake"):
        compile_module.check_packages(compile_module.TargetPython())


def extracted(archive, folder):
    with tarfile.open(archive) as files:
        names = files.getnames()
        files.extractall(folder)
    [top] = {name.split("/")[0] for name in names}
    return folder / top, {name.partition("/")[2] for name in names}


def test_sdist_has_what_a_build_needs_and_no_more(tmp_path, monkeypatch):
    monkeypatch.chdir(SOURCE)
    name = viaduct_build.viaduct.build_sdist(tmp_path)
    folder, names = extracted(tmp_path / name, tmp_path)
    for one in (
        "pyproject.toml",
        "CMakeLists.txt",
        "LICENSE",
        "PKG-INFO",
        "src/CMakeLists.txt",
        "include/viaduct/agent.h",
    ):
        assert one in names
    for one in (
        "python/CMakeLists.txt",
        "python/module.map",
        "python/csrc/module_py.cc",
        "python/build_backend/viaduct_build.py",
        "python/viaduct/__init__.py",
    ):
        assert one in names
    assert not [
        one
        for one in names
        if "__pycache__" in one or one.startswith(("build", "tests", "python/tests"))
    ]
    monkeypatch.chdir(folder)
    assert viaduct_build.viaduct.prepare_metadata_for_build_wheel(tmp_path / "metadata").startswith(
        "viaduct-"
    )


def test_sdist_of_viaduct_nixl_knows_its_version(tmp_path, monkeypatch):
    monkeypatch.chdir(SOURCE / "python" / "nixl")
    name = viaduct_build.viaduct_nixl.build_sdist(tmp_path)
    folder, names = extracted(tmp_path / name, tmp_path)
    assert "build_backend/viaduct_build.py" in names and "nixl/_api.py" in names
    monkeypatch.chdir(folder)
    wheel = viaduct_build.viaduct_nixl.build_wheel(tmp_path)
    assert wheel.startswith("viaduct_nixl-1.4.0+viaduct.")


def test_equal_builds_give_equal_wheels(build_folder, tmp_path):
    settings = {"build-dir": str(build_folder)}
    wheels = [
        (folder / viaduct_build.viaduct.write_wheel(SOURCE, folder, settings)).read_bytes()
        for folder in (tmp_path / "first", tmp_path / "second")
    ]
    assert wheels[0] == wheels[1]


def headers_of(folder, *versions):
    for version in versions:
        include = folder / "usr/include" / f"python{version}"
        include.mkdir(parents=True)
        (include / "Python.h").write_text("")
    return folder


def test_headers_name_the_python(tmp_path):
    python = compile_module.TargetPython(headers_of(tmp_path, "3.13"))
    assert python.tag == "cp313"
    assert re.fullmatch(r"\.cpython-313-\w+-linux-gnu\.so", python.suffix)
    assert python.options()[0] == "-DVIADUCT_PYTHON="


def test_headers_of_no_python_or_of_two_are_refused(tmp_path):
    for folder, count in ((tmp_path / "none", 0), (headers_of(tmp_path / "two", "3.9", "3.13"), 2)):
        with pytest.raises(compile_module.BuildError, match=f"headers of {count} Pythons"):
            compile_module.TargetPython(folder)


@pytest.mark.parametrize(
    ("told", "minor"),
    [
        ("Name: GLIBC_2.4\n Name: GLIBC_2.34  Flags: none\n Name: GLIBCXX_3.4.30", 34),
        ("Nom: GLIBC_2.17", 17),
        ("Name: GLIBC_2.17\n Name: GLIBC_ABI_DT_RELR", 36),
    ],
)
def test_the_oldest_glibc_is_that_of_the_newest_symbol(tmp_path, monkeypatch, told, minor):
    readelf = tmp_path / "readelf"
    readelf.write_text(f"#!/bin/sh\ncat <<'X'\n{told}\nX\n")
    readelf.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert compile_module.oldest_glibc(tmp_path / "module.so") == minor
