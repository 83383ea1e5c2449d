#!/usr/bin/env python3
"""./dev release sets one version, cuts the changelog, refuses what is no release, and lists the same bytes twice."""
import contextlib
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import zipfile

import artifacts
import cpp_headers
import release

for program in ("git", "dpkg-deb", "dpkg-scanpackages"):
    if shutil.which(program) is None:
        print(f"skipped: no {program}")
        sys.exit(77)

CHANGELOG = """# Changelog

## Unreleased: 0.2.0, the first release

- One entry.
- Another entry
  of two lines.

## 0.1.0, 2026-01-02

- An old entry.
"""
FILES = {
    "CMakeLists.txt": "project(viaduct VERSION 0.1.0 LANGUAGES CXX)\n",
    "CHANGELOG.md": CHANGELOG,
    "README.md": "viaduct 0.1.0 on vm: 10.1.0.12\n",
    "docs/kubernetes.md": "viaduct 0.1.0 on vm\nviaduct:0.1.0-full\nnewTag: 0.1.0\nviaduct:0.1.0.1\n",
    "docs/install.md": "find_package(viaduct 0.1 REQUIRED)\n",
    "deploy/k8s/base/bench.yaml": "image: viaduct:0.1.0\naddress: 10.0.1.0\n",
    "python/viaduct/nixl/packages/x/METADATA": "Version: 1.4.0+viaduct.0.1.0\n",
    # One promise of each kind that a release makes.
    "docs/bench-flags.md": "## `viaduct bench`\n\n```\nData:\n  --batch N  blocks\n```\n",
    "docs/settings.md": "| `VIADUCT_NAME` | | a name |\n",
    "docs/metrics.md": "| `viaduct_agent` | info | `endpoint` | an agent |\n",
    "docs/results.md": "| `version` | a version |\n",
    "apps/viaduct/commands.h": "  kExitOk = 0,\n",
    "apps/viaduct/doctor.h": "  kExitFine = 0,\n",
    "src/diag/topics.cc": 'Topic{"rdma", "devices"}\n',
    "src/diag/check_rdma.cc": '.code = "rdma.none"\n',
    "include/viaduct/c.h": "VIADUCT_C_API int viaduct_version(void);\n",
    "python/viaduct/_core.pyi": "class Agent: ...\n",
    "tools/release.txt": "a folder\n",
}


def folder():
    out = pathlib.Path(tempfile.mkdtemp())
    unittest.addModuleCleanup(shutil.rmtree, out)
    return out


def tree(**changes):
    """A repository of one commit, with the files above."""
    root = folder()
    for name, text in {**FILES, **changes}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for words in (["init", "--quiet"], ["config", "user.name", "A"], ["config", "user.email", "a@b.invalid"],
                  ["config", "commit.gpgsign", "false"]):  # fmt: skip
        release.git(root, *words)
    commit(root, "Begin")
    return root


def commit(root, subject):
    release.git(root, "add", "--all")
    release.git(root, "commit", "--quiet", "--message", subject)


def prepare(root, version, dry_run=False):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        release.prepare(root, version, dry_run)
    return printed.getvalue()


class Prepare(unittest.TestCase):
    def setUp(self):
        os.environ["SOURCE_DATE_EPOCH"] = "1795000000"
        self.addCleanup(os.environ.pop, "SOURCE_DATE_EPOCH")

        # check_stability_test.py reads headers. Here their compiler may be missing.
        for name, value in (("is_readable", lambda: True), ("cpp_interface", lambda root: ["c++ function f int ()"])):
            patch = unittest.mock.patch.object(cpp_headers, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def test_the_version_stands_in_every_file(self):
        root = tree()
        prepare(root, "0.2.0")
        self.assertEqual(release.version_of(root), "0.2.0")
        read = {name: (root / name).read_text() for name in FILES}
        self.assertEqual(read["README.md"], FILES["README.md"], "a sample of output")
        self.assertEqual(read["docs/kubernetes.md"], "viaduct 0.1.0 on vm\nviaduct:0.2.0-full\nnewTag: 0.2.0\nviaduct:0.1.0.1\n")
        self.assertEqual(read["docs/install.md"], "find_package(viaduct 0.2 REQUIRED)\n")
        self.assertEqual(read["deploy/k8s/base/bench.yaml"], "image: viaduct:0.2.0\naddress: 10.0.1.0\n")
        self.assertEqual(read["python/viaduct/nixl/packages/x/METADATA"], "Version: 1.4.0+viaduct.0.2.0\n")
        promises = (root / "tools/stable.txt").read_text()
        self.assertIn("flag viaduct bench --batch\n", promises)
        self.assertEqual(len(promises.splitlines()), 10)
        self.assertEqual(release.git(root, "log", "-1", "--format=%s").strip(), "Release 0.2.0")
        self.assertEqual(release.git(root, "status", "--porcelain"), "")

    def test_the_changelog_gets_the_versions_section(self):
        root = tree()
        prepare(root, "0.2.0")
        text = (root / "CHANGELOG.md").read_text()
        self.assertTrue(text.startswith(
            "# Changelog\n\n## Unreleased\n\n## 0.2.0, 2026-11-18: the first release\n\n- One entry.\n"), text)  # fmt: skip
        self.assertTrue(text.endswith("  of two lines.\n\n## 0.1.0, 2026-01-02\n\n- An old entry.\n"), text)

    def test_a_dry_run_changes_nothing(self):
        root = tree()
        before = release.git(root, "rev-parse", "HEAD")
        said = prepare(root, "0.2.0", dry_run=True)
        self.assertIn("the version becomes 0.2.0, from 0.1.0, in 5 files", said)
        self.assertIn("2 entries", said)
        self.assertEqual((release.git(root, "rev-parse", "HEAD"), release.git(root, "status", "--porcelain")), (before, ""))

    def test_a_prepared_release_is_not_prepared_again(self):
        root = tree()
        prepare(root, "0.2.0")
        before = release.git(root, "rev-parse", "HEAD")
        self.assertIn("HEAD is the commit of 0.2.0", prepare(root, "0.2.0"))
        self.assertEqual(release.git(root, "rev-parse", "HEAD"), before)

    def refused(self, root, version):
        with self.assertRaises(release.Refused) as caught:
            prepare(root, version)
        return str(caught.exception)

    def test_refusals_name_the_reason(self):
        root = tree()
        for version in ("0.2", "v0.2.0", "0.2.0-rc1", ""):
            self.assertIn("is no version", self.refused(root, version))
        self.assertIn("0.1.0 exists: a section of CHANGELOG.md has it", self.refused(root, "0.1.0"))
        self.assertIn("0.0.9 is older than 0.1.0", self.refused(root, "0.0.9"))
        release.git(root, "tag", "v0.10.0")
        self.assertIn("0.10.0 exists: the tag v0.10.0 has it", self.refused(root, "0.10.0"))
        self.assertIn("0.9.0 is older than 0.10.0, which the tag v0.10.0 has", self.refused(root, "0.9.0"))
        (root / "new.txt").write_text("")
        self.assertIn("no commit has these changes: new.txt", self.refused(root, "1.0.0"))

    def test_a_tree_may_already_be_ahead_of_its_releases(self):
        root = tree(**{"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n- One.\n"})
        prepare(root, "0.1.0")
        self.assertEqual(release.version_of(root), "0.1.0")
        other = tree(**{"CMakeLists.txt": "project(viaduct VERSION 0.3.0 LANGUAGES CXX)\n"})
        self.assertIn("0.2.0 is older than 0.3.0 in CMakeLists.txt", self.refused(other, "0.2.0"))

    def test_a_changelog_without_entries_is_refused(self):
        for text in ("# Changelog\n", "# Changelog\n\n## Unreleased\n\nSoon.\n\n## 0.1.0, 2026-01-02\n\n- One.\n"):
            self.assertIn("no entries under Unreleased", self.refused(tree(**{"CHANGELOG.md": text}), "0.2.0"))

    def test_a_promise_that_cannot_be_written_is_refused(self):
        with unittest.mock.patch.object(cpp_headers, "is_readable", lambda: False):
            self.assertIn("clang++-19 records the C++ interface, and is not here", self.refused(tree(), "0.2.0"))

    def test_this_repository_shows_one_version(self):
        version = release.version_of(release.ROOT)
        images = re.compile(r"\bviaduct(?:-python)?:(\d+\.\d+\.\d+)|newTag: (\d+\.\d+\.\d+)|ARG VERSION=(\d+\.\d+\.\d+)")
        for path in [*release.ROOT.glob("deploy/**/*"), *release.ROOT.glob("docs/*.md")]:
            if path.is_file():
                for found in images.findall(path.read_text()):
                    self.assertEqual("".join(found), version, path)


def inputs():
    """A package, a wheel and a doctor, as small as can be."""
    root = folder()
    package = root / "package"
    (package / "DEBIAN").mkdir(parents=True)
    (package / "DEBIAN/control").write_text(
        "Package: viaduct\nVersion: 0.2.0\nArchitecture: all\nMaintainer: A <a@b.invalid>\nDescription: a test\n")  # fmt: skip
    (root / "debs").mkdir()
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", package, root / "debs/viaduct_0.2.0_all.deb"], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": "1795000000"})  # fmt: skip
    (root / "wheels").mkdir()
    with zipfile.ZipFile(root / "wheels/viaduct-0.2.0-cp311-cp311-manylinux_2_34_x86_64.whl", "w") as wheel:
        wheel.writestr(zipfile.ZipInfo("a"), "a")
    shutil.copy(root / "wheels/viaduct-0.2.0-cp311-cp311-manylinux_2_34_x86_64.whl",
                root / "wheels/viaduct-0.2.0-cp313-cp313-manylinux_2_34_x86_64.whl")  # fmt: skip
    (root / "python-3.13").mkdir()
    (root / "python-3.13/versions").write_text("libpython3.13-dev 3.13.5-2\npybind11-dev 2.13.6-2\n")
    (root / "images").mkdir()
    (root / "images/viaduct-0.2.0.tar").write_text("an image")
    (root / "doctor").write_bytes(b"\x7fELF" + bytes(14) + b"\x3e\0")
    return root


def collect(source, made, into):
    command = [sys.executable, "-B", artifacts.__file__, str(into), "--root", str(source), "--debs", str(made / "debs"),
               "--wheels", str(made / "wheels"), "--headers", str(made / "python-3.13"), "--doctor", str(made / "doctor"),
               "--images", str(made / "images")]  # fmt: skip
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {str(one.relative_to(into)): one.read_bytes() for one in into.rglob("*") if one.is_file()}


class Artifacts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.source, cls.made, cls.out = tree(), inputs(), folder() / "out"
        cls.files = collect(cls.source, cls.made, cls.out)

    def test_another_folder_gets_the_same_bytes(self):
        clone = folder() / "clone"
        release.git(self.source, "clone", "--quiet", str(self.source), str(clone))
        self.assertEqual(collect(clone, self.made, folder() / "other"), self.files)

    def test_every_file_has_its_sum(self):
        rows = dict(reversed(line.split("  ")) for line in self.files["SHA256SUMS"].decode().splitlines())
        self.assertEqual(rows.keys() | {"SHA256SUMS"}, self.files.keys())
        for name, found in rows.items():
            self.assertEqual(hashlib.sha256(self.files[name]).hexdigest(), found, name)

    def test_the_source_archive_is_head(self):
        shutil.unpack_archive(self.out / "viaduct-0.1.0.tar.gz", unpacked := folder())
        self.assertEqual((unpacked / "viaduct-0.1.0/CHANGELOG.md").read_text(), CHANGELOG)

    def test_the_doctor_has_its_processor_in_its_name(self):
        self.assertIn("viaduct-doctor-0.1.0-amd64", self.files)

    def test_apt_takes_the_repository(self):
        self.assertEqual(gzip.decompress(self.files["apt/Packages.gz"]), self.files["apt/Packages"])
        if shutil.which("apt-get") is None:
            self.skipTest("no apt-get")
        work = folder()
        for name in ("lists/partial", "archives/partial", "nothing"):
            (work / name).mkdir(parents=True)
        (work / "status").write_text("")
        (work / "sources.list").write_text(f"deb [trusted=yes] file:{self.out}/apt ./\n")
        options = {"Dir::State::lists": "lists", "Dir::State::status": "status", "Dir::Cache": "", "Dir::Cache::archives": "archives",
                   "Dir::Etc::sourcelist": "sources.list", "Dir::Etc::sourceparts": "nothing", "Dir::Etc::parts": "nothing"}  # fmt: skip
        words = [word for key, value in options.items() for word in ("-o", f"{key}={work / value}")] + ["-o", "APT::Sandbox::User="]
        subprocess.run(["apt-get", "-q", *words, "update"], check=True, stdout=subprocess.DEVNULL)
        shown = subprocess.run(["apt-cache", *words, "policy", "viaduct"], check=True, capture_output=True, text=True).stdout
        self.assertIn("Candidate: 0.2.0", shown)

    def test_the_list_of_contents_is_whole(self):
        found = json.loads(self.files["viaduct-0.1.0.spdx.json"])
        self.assertEqual((found["spdxVersion"], found["dataLicense"]), ("SPDX-2.3", "CC0-1.0"))
        names = [one["SPDXID"] for one in found["packages"]]
        self.assertEqual(len(names), len(set(names)))
        for one in names:
            self.assertRegex(one, r"^SPDXRef-[A-Za-z0-9.-]+$")
        for one in found["relationships"]:
            for end in ("spdxElementId", "relatedSpdxElement"):
                self.assertIn(one[end], [*names, "SPDXRef-DOCUMENT"])
        listed = {one["name"]: one["checksums"][0]["checksumValue"] for one in found["packages"] if "checksums" in one}
        lists = {"SHA256SUMS", "apt/Packages", "apt/Packages.gz", "apt/Release", "viaduct-0.1.0.spdx.json"}
        self.assertEqual(listed, {name: hashlib.sha256(data).hexdigest() for name, data in self.files.items() if name not in lists})
        for name, libraries in (("viaduct-doctor-0.1.0-amd64", ("libarchive-dev", "libc6-dev", "libssl-dev")),
                                ("viaduct-0.2.0-cp311-cp311-manylinux-2-34-x86-64.whl", ("pybind11-dev", "libstdc---12-dev")),
                                ("viaduct-0.2.0-cp313-cp313-manylinux-2-34-x86-64.whl", ("pybind11-dev-2.13.6-2", "libfmt-dev"))):
            inside = {one["relatedSpdxElement"] for one in found["relationships"]
                      if one["relationshipType"] == "STATIC_LINK" and one["spdxElementId"].endswith(name)}  # fmt: skip
            self.assertLessEqual({f"SPDXRef-{one}" for one in libraries}, inside)


if __name__ == "__main__":
    unittest.main()
