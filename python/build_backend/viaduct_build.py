"""Builds wheels and sdists of this repository: as the build backend of pip, and as a command.

    python3 viaduct_build.py wheel --out DIR [--build BUILD | --portable [--headers DIR]]
    python3 viaduct_build.py nixl-wheel --out DIR
    python3 viaduct_build.py description --out DIR     the folder *.dist-info, for Debian's package

The backend (PEP 517) imports only the standard library, so that pip needs no network.
"""

import argparse
import contextlib
import io
import os
import pathlib
import re
import sys
import sysconfig
import tarfile

from compile_module import (BuildError, TargetPython, compile_module, foreign_libraries, module_of,
                            oldest_glibc, say, stripped)  # fmt: skip
from wheel_file import EPOCH, WheelFile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def version(root):
    """Returns the version from CMakeLists.txt, or from PKG-INFO in an sdist of viaduct-nixl."""
    for name, pattern in (
        ("CMakeLists.txt", r"^project\(viaduct VERSION ([0-9.]+)"),
        ("../../CMakeLists.txt", r"^project\(viaduct VERSION ([0-9.]+)"),
        ("PKG-INFO", r"^Version: \S*viaduct\.([0-9.]+)"),
    ):
        path = root / name
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if found := re.search(pattern, text, re.MULTILINE):
            return found.group(1)
    raise BuildError(f"{root} has no version: neither CMakeLists.txt nor PKG-INFO names one")


def licence(root):
    return next(one for one in (root / "LICENSE", root / "../../LICENSE") if one.is_file())


def package_files(folder, packages):
    """Yields the files of the packages below the folder as (name in the wheel, path)."""
    for package in packages:
        for path in sorted((folder / package).rglob("*")):
            if path.suffix in (".py", ".pyi") or path.name in ("py.typed", "METADATA"):
                yield path.relative_to(folder).as_posix(), path


def plain_entry(entry):
    """Removes the owner and date of this machine from an sdist's entry. Drops compiled files."""
    if entry.name.endswith(("/__pycache__", ".pyc")):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = EPOCH
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry


@contextlib.contextmanager
def errors_in_words():
    """Ends the process with the text of a BuildError instead of a traceback."""
    try:
        yield
    except BuildError as error:
        sys.exit(f"\nviaduct: {error}")


class Distribution:
    """Implements the hooks of PEP 517 for both distributions: viaduct and viaduct-nixl.

    pip runs the hooks in the folder of pyproject.toml.
    """

    name = summary = description = ""
    scripts = {}

    def full_version(self, root):
        return version(root)

    def requires(self, root):
        return []

    def tag(self):
        """Returns the tag of a wheel for this host."""
        return "py3-none-any"

    def compiled(self, root, settings):
        """Returns the compiled modules as (name in the wheel, bytes), and the wheel's tag."""
        return [], "py3-none-any"

    def more_files(self, root):
        """Returns further files of the wheel as (name in the wheel, text)."""
        return []

    def metadata(self, root):
        requires = "".join(f"Requires-Dist: {one}\n" for one in self.requires(root))
        return f"""\
Metadata-Version: 2.1
Name: {self.name}
Version: {self.full_version(root)}
Summary: {self.summary}
License: Apache-2.0
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Requires-Python: >=3.9
{requires}Description-Content-Type: text/markdown

{self.description}
"""

    def stem(self, root):
        return f"{self.name.replace('-', '_')}-{self.full_version(root)}"

    def dist_info(self, root, tag):
        """Yields the files of the folder *.dist-info as (name, text)."""
        pure = "true" if tag.endswith("any") else "false"
        yield "METADATA", self.metadata(root)
        yield "WHEEL", (
            "Wheel-Version: 1.0\nGenerator: viaduct_build\n"
            f"Root-Is-Purelib: {pure}\nTag: {tag}\n"
        )
        if self.scripts:
            rows = "".join(f"{name} = {target}\n" for name, target in self.scripts.items())
            yield "entry_points.txt", f"[console_scripts]\n{rows}"
        yield "LICENSE", licence(root).read_text(encoding="utf-8")

    def write_wheel(self, root, folder, settings):
        modules, tag = self.compiled(root, settings)
        file_name = f"{self.stem(root)}-{tag}.whl"
        folder.mkdir(parents=True, exist_ok=True)
        wheel = WheelFile(folder / file_name)
        for name, path in package_files(*self.packages(root)):
            wheel.add(name, path.read_bytes())
        for name, data in modules:
            wheel.add(name, data, executable=True)
        dist_info = f"{self.stem(root)}.dist-info"
        for name, text in self.dist_info(root, tag):
            wheel.add(f"{dist_info}/{name}", text.encode())
        for name, text in self.more_files(root):
            wheel.add(name, text.encode())
        wheel.close(dist_info)
        say(f"made {file_name}, {(folder / file_name).stat().st_size / 1e6:.2f} MB")
        return file_name

    def write_sdist(self, root, folder):
        file_name = f"{self.stem(root)}.tar.gz"
        with tarfile.open(folder / file_name, "w:gz", dereference=True) as sdist:
            for name, path in self.sdist_files(root):
                sdist.add(path, f"{self.stem(root)}/{name}", filter=plain_entry)
            text = self.metadata(root).encode()
            entry = tarfile.TarInfo(f"{self.stem(root)}/PKG-INFO")
            entry.size, entry.mtime = len(text), EPOCH
            sdist.addfile(entry, io.BytesIO(text))
        say(f"made {file_name}")
        return file_name

    @errors_in_words()
    def get_requires_for_build_editable(self, config_settings=None):
        raise BuildError(
            "editable installs are not supported: the compiled module lies in a build folder. Run "
            "pip install . again after a change, or ./dev test, which tests an installation of its "
            "own."
        )

    def write_dist_info(self, root, parent):
        name = f"{self.stem(root)}.dist-info"
        folder = parent / name
        folder.mkdir(parents=True, exist_ok=True)
        for file_name, text in self.dist_info(root, self.tag()):
            (folder / file_name).write_text(text, encoding="utf-8")
        return name

    @errors_in_words()
    def prepare_metadata_for_build_wheel(self, metadata_directory, config_settings=None):
        return self.write_dist_info(pathlib.Path.cwd(), pathlib.Path(metadata_directory))

    @errors_in_words()
    def build_wheel(self, wheel_directory, config_settings=None, metadata_directory=None):
        folder = pathlib.Path(wheel_directory)
        return self.write_wheel(pathlib.Path.cwd(), folder, config_settings or {})

    @errors_in_words()
    def build_sdist(self, sdist_directory, config_settings=None):
        return self.write_sdist(pathlib.Path.cwd(), pathlib.Path(sdist_directory))

    def build_editable(self, wheel_directory, config_settings=None, metadata_directory=None):
        self.get_requires_for_build_editable()


class Viaduct(Distribution):
    name = "viaduct"
    summary = "Moves blocks of memory between processes and hosts"
    scripts = {"verify_nixl_setup": "viaduct.verify:verify_nixl_setup"}
    description = (
        "Viaduct moves blocks of memory for systems that serve large language models: KV caches, "
        "weights, checkpoints. `python -m viaduct.verify` shows what it can use on this host."
    )

    def __init__(self, portable=False, headers=None):
        """`portable`: for other hosts. `headers`: those of another Python."""
        self._portable, self._headers = portable, headers

    def tag(self):
        return self._tag(TargetPython())

    def _tag(self, python, glibc=None):
        platform = re.sub("[-.]", "_", sysconfig.get_platform())
        if glibc is not None:
            platform = platform.replace("linux", f"manylinux_2_{glibc}")
        return f"{python.tag}-{python.tag}-{platform}"

    def packages(self, root):
        return root / "python", ["viaduct"]

    def sdist_files(self, root):
        files = "pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md"
        for name in (*files, "cmake", "include", "src"):
            yield name, root / name
        for path in sorted((root / "python").iterdir()):
            if path.name not in ("nixl", "tests"):  # a distribution of its own; not part of a build
                yield f"python/{path.name}", path

    def compiled(self, root, settings):
        """Takes the module from build-dir or VIADUCT_BUILD_DIR. Compiles the module if neither is
        set, and always for a wheel for other hosts."""
        build = settings.get("build-dir") or os.environ.get("VIADUCT_BUILD_DIR")
        python = TargetPython(self._headers)
        if build and not self._portable:
            module = module_of(pathlib.Path(build), python)
        else:
            module = module_of(compile_module(root, python, self._portable), python)
        if foreign := foreign_libraries(module):
            say(f"the module in {module.parent} needs {', '.join(foreign)}, "
                "and so does a host that uses the wheel")  # fmt: skip
        data = stripped(module)
        say(f"{module.name} has {len(data) / 1e6:.2f} MB")
        tag = self._tag(python, oldest_glibc(module) if self._portable else None)
        return [(f"viaduct/{module.name}", data)], tag


class ViaductNixl(Distribution):
    name = "viaduct-nixl"
    summary = "The packages nixl, nixl_cu12 and nixl_cu13 over Viaduct"
    description = "Programs that import `nixl` run over Viaduct without a changed line."

    def full_version(self, root):
        # Programs require a minimum version of nixl. This package has the API of version 1.4.
        return f"1.4.0+viaduct.{version(root)}"

    def requires(self, root):
        return [f"viaduct (=={version(root)})"]

    def more_files(self, root):
        # Programs ask importlib.metadata for the version of "nixl". pip accepts one folder *.dist-info
        # at the top of a wheel, so this one comes with the wheel's data.
        version = self.full_version(root)
        name = f"{self.stem(root)}.data/purelib/nixl-{version}.dist-info/METADATA"
        text = f"Metadata-Version: 2.1\nName: nixl\nVersion: {version}\n"
        return [(name, text + "Summary: The Python API of NIXL over Viaduct\n")]

    def packages(self, root):
        names = [path.parent.name for path in sorted(root.glob("nixl*/__init__.py"))]
        if not names:
            raise BuildError(f"{root} has no package nixl: it is no folder of viaduct-nixl")
        return root, names

    def sdist_files(self, root):
        yield "pyproject.toml", root / "pyproject.toml"
        yield "LICENSE", licence(root)
        yield "build_backend", root / "build_backend"
        for name in self.packages(root)[1]:
            yield name, root / name


viaduct = Viaduct()
viaduct_nixl = ViaductNixl()


def main():
    parser = argparse.ArgumentParser(description="Makes the wheels of this repository.")
    parser.add_argument("what", choices=["wheel", "nixl-wheel", "description"])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the result")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--build", help="build folder that has the module; default: build it")
    how.add_argument("--portable", action="store_true", help="build it for other hosts")
    parser.add_argument("--headers", type=pathlib.Path,
                        help="folder of tools/debian_files.sh with the headers of another Python")
    flags = parser.parse_args()
    settings = {"build-dir": flags.build} if flags.build else {}
    if flags.headers and not flags.portable:
        parser.error("--headers needs --portable")
    with errors_in_words():
        if flags.what == "wheel":
            Viaduct(flags.portable, flags.headers).write_wheel(ROOT, flags.out, settings)
        elif flags.what == "description":
            viaduct.write_dist_info(ROOT, flags.out)
        else:
            viaduct_nixl.write_wheel(ROOT / "python" / "nixl", flags.out, settings)


if __name__ == "__main__":
    main()
