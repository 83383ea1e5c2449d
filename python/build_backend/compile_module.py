"""Compiles the module of the package viaduct with CMake, or finds it in a build folder."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile

# Maps each Debian package that a build needs to a program or header that the package contains.
REQUIRED = {
    "g++": "c++",
    "cmake": "cmake",
    "python3-dev": "Python.h",
    "pybind11-dev": "pybind11/pybind11.h",
    "libfmt-dev": "fmt/format.h",
    "libssl-dev": "openssl/hmac.h",
    "nlohmann-json3-dev": "nlohmann/json.hpp",
}
# Maps each optional Debian package to the feature that a module built without it lacks.
OPTIONAL = {
    "libucx-dev": ("ucp/api/ucp.h", "the backend ucx"),
    "libfabric-dev": ("rdma/fi_rma.h", "the backend ofi"),
    "libcurl4-openssl-dev": ("curl/curl.h", "etcd as a meeting place"),
}
CMAKE_OPTIONS = [
    "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DVIADUCT_TESTS=OFF",
    "-DVIADUCT_BENCH=OFF",
    "-DVIADUCT_PROGRAM=OFF",
    "-DVIADUCT_PYTHON_MODULE=ON",
    "-DVIADUCT_MERGE=ON",
    "-DVIADUCT_PCH=ON",
]
# Most hosts with Python have these libraries. The build names any other library that a wheel needs.
COMMON_LIBRARIES = re.compile(
    r"(libstdc\+\+|libgcc_s|libc|libm|libcrypto|libpthread|libdl|ld-linux\S*)\.so\.\d+"
)


# A wheel for other hosts has libstdc++ inside, because theirs may be older. --gc-sections drops the
# unused code of libstdc++ that calls functions of newer glibcs. mold would keep it.
PORTABLE = [
    "-DCMAKE_MODULE_LINKER_FLAGS=-Wl,--as-needed -static-libstdc++ -Wl,--gc-sections",
    "-DVIADUCT_MOLD=OFF",
]


class BuildError(Exception):
    """Reports a failed build. Its text names the failure, the likely cause and the remedy."""


class TargetPython:
    """The Python for which a module is: the one that runs this, or the one whose headers
    tools/debian_files.sh has unpacked."""

    def __init__(self, headers=None):
        self.headers = headers
        if headers is None:
            self.includes = [sysconfig.get_path("include")]
            self.tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
            self.suffix = sysconfig.get_config_var("EXT_SUFFIX")
            return
        found = sorted(headers.glob("usr/include/python3.*/Python.h"))
        if len(found) != 1:
            raise BuildError(f"{headers} has the headers of {len(found)} Pythons, not of one; "
                             "tools/debian_files.sh unpacks them")
        self.includes = [str(found[0].parent), str(headers / "usr/include")]
        minor = found[0].parent.name.partition(".")[2]
        architecture = subprocess.run([*compiler(), "-print-multiarch"], capture_output=True,
                                      text=True, check=True).stdout.strip()  # fmt: skip
        self.tag = f"cp3{minor}"
        self.suffix = f".cpython-3{minor}-{architecture}.so"

    def options(self):
        """Returns the options that tell CMake for which Python it builds the module."""
        if self.headers is None:
            return [f"-DVIADUCT_PYTHON={sys.executable}", "-DVIADUCT_PYTHON_HEADERS="]
        return ["-DVIADUCT_PYTHON=", f"-DVIADUCT_PYTHON_HEADERS={self.headers.resolve()}"]


def say(text):
    print(f"viaduct: {text}", flush=True)


def compiler():
    return shlex.split(os.environ.get("CXX", "c++"))


def is_there(what, python):
    """Returns whether PATH has the program, or the compiler finds the header."""
    if not what.endswith((".h", ".hpp")):
        return shutil.which(what) is not None
    folders = [f"-I{folder}" for folder in python.includes]
    preprocess = [*compiler(), "-E", "-x", "c++", *folders, "-"]
    question = f"#if !__has_include(<{what}>)\n#error missing\n#endif\n"
    ran = subprocess.run(preprocess, input=question, capture_output=True, text=True, check=False)
    return ran.returncode == 0


def lacking(what, packages):
    return BuildError(f"{what}. On Debian and Ubuntu: apt-get install {' '.join(packages)}")


def check_packages(python):
    """Raises if a required package is missing. Prints which features the module will lack."""
    if shutil.which(compiler()[0]) is None:
        raise lacking(f"no C++ compiler: there is no {compiler()[0]}", REQUIRED)
    missing = [name for name, what in REQUIRED.items() if not is_there(what, python)]
    if missing:
        files = ", ".join(REQUIRED[name] for name in missing)
        raise lacking(f"this machine lacks {files}", missing)
    for name, (header, feature) in OPTIONAL.items():
        if not is_there(header, python):
            say(f"without {feature}: there is no {header} (package {name})")


def run_cmake(what, *arguments):
    if subprocess.run(["cmake", *arguments], check=False).returncode != 0:
        raise BuildError(f"{what} failed; CMake's own words stand above")


def build_folder(root, kind, python):
    """Returns a folder in build/, which makes rebuilds short. Falls back to a temporary folder."""
    folder = root / "build" / f"{kind}-{python.tag}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        say(f"cannot make {folder}: {error.strerror}")
    if os.access(folder, os.W_OK):
        return folder
    return pathlib.Path(tempfile.mkdtemp(prefix="viaduct-build-"))


def compiler_options(root):
    """Returns options that make equal modules in every folder.

    The module contains the code of fmt, because Debian has no static libfmt, and few hosts without
    a compiler have the shared libfmt.
    """
    return f"-DFMT_HEADER_ONLY=1 -ffile-prefix-map={root}=."


def compile_module(root, python, portable):
    """Builds the module. Returns the build folder."""
    check_packages(python)
    build = build_folder(root, "portable" if portable else "pip", python)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    # As in ./dev: without the sloppiness, ccache finds no object that was built with a precompiled
    # header. With the base folder, it finds the objects of another clone.
    ccache = (
        f"env;CCACHE_SLOPPINESS=pch_defines,time_macros;CCACHE_BASEDIR={root};"
        "CCACHE_NOHASHDIR=yes;ccache"
    )
    launcher = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}"] if shutil.which("ccache") else []
    say(f"configuring in {build}")
    run_cmake(
        "configuring", "-S", str(root), "-B", str(build), *generator, *launcher, *CMAKE_OPTIONS,
        *(PORTABLE if portable else ["-DCMAKE_MODULE_LINKER_FLAGS=-Wl,--as-needed"]),
        *python.options(), f"-DCMAKE_CXX_FLAGS={compiler_options(root)}",
    )  # fmt: skip
    jobs = str(len(os.sched_getaffinity(0)))
    say(f"compiling the module with {jobs} jobs at once; this takes minutes")
    run_cmake("compiling", "--build", str(build), "-j", jobs, "--target", "viaduct_python")
    return build


def module_of(build, python):
    path = build / "python" / "viaduct" / f"_core{python.suffix}"
    if not path.is_file():
        raise BuildError(
            f"there is no {path}. Build the target viaduct_python there, with "
            f"{' '.join(python.options())}"
        )
    return path


def stripped(path):
    """Returns the bytes of the module without symbols and debug information."""
    strip = shutil.which("strip")
    if strip is None:
        raise BuildError("there is no strip to shrink the module with (package binutils)")
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, path.name)
        subprocess.run([strip, "--strip-unneeded", "-o", str(out), str(path)], check=True)
        return out.read_bytes()


def foreign_libraries(path):
    """Returns the libraries that the module needs and that some hosts with Python lack."""
    text = subprocess.run(
        ["readelf", "--dynamic", "--wide", str(path)], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    if not needed:
        raise BuildError(f"readelf names no library that {path} needs")
    return [name for name in needed if not COMMON_LIBRARIES.fullmatch(name)]


def oldest_glibc(path):
    """Returns the minor version of the oldest glibc 2 with which the module works."""
    text = subprocess.run(["readelf", "--version-info", "--wide", str(path)], check=True, text=True,
                          stdout=subprocess.PIPE).stdout  # fmt: skip
    minors = [int(minor) for minor in re.findall(r"\bGLIBC_2\.(\d+)", text)]
    if "GLIBC_ABI_DT_RELR" in text:
        minors.append(36)
    if not minors:
        raise BuildError(f"{path} needs no version of glibc, so it is for another libc")
    return max(minors)
