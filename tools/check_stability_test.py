#!/usr/bin/env python3
"""check_stability.py reports each kind of break of a promise, and no addition."""
import pathlib
import shutil
import tempfile
import unittest
import unittest.mock

import check_stability
import cpp_headers

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ("docs/bench-flags.md", "docs/settings.md", "docs/metrics.md", "docs/results.md", "apps/viaduct/commands.h",
           "apps/viaduct/doctor.h", "python/viaduct/_core.pyi")  # fmt: skip
# A file, its text, the text of the break, and a part of the complaint.
BREAKS = (
    ("docs/bench-flags.md", "  --block-sizes SIZE", "  --blocks SIZE", "flag viaduct bench --block-sizes"),
    ("docs/settings.md", "`VIADUCT_LISTEN`", "`VIADUCT_LISTENS`", "setting VIADUCT_LISTEN"),
    ("docs/metrics.md", "| `viaduct_moved_bytes` | counter | `backend`, `rail`", "| `viaduct_moved_bytes` | counter | `backend`",
     "metric viaduct_moved_bytes counter backend,rail"),
    ("docs/metrics.md", "| `viaduct_moved_ops` | counter", "| `viaduct_moved_ops` | gauge", "metric viaduct_moved_ops"),
    ("docs/results.md", "| `fingerprint` |", "| `print` |", "result environment: fingerprint"),
    ("docs/results.md", "viaduct-bench/1", "viaduct-bench/2", "result format viaduct-bench/1"),
    ("apps/viaduct/commands.h", "kExitUnsure = 4", "kExitUnsure = 5", "exit commands Unsure = 4"),
    ("apps/viaduct/doctor.h", "kExitWillNotWork = 2", "kExitWillNotWork = 1", "exit doctor WillNotWork = 2"),
    ("src/diag/check_libraries.cc", '"libraries.old"', '"libraries.outdated"', "finding libraries.old"),
    ("include/viaduct/c.h", "VIADUCT_BUSY = 5", "VIADUCT_BUSY = 50", "c VIADUCT_BUSY = 5"),
    ("include/viaduct/c.h", "viaduct_pin_close(viaduct_pin pin,", "viaduct_pin_close(viaduct_pin* pin,", "viaduct_pin_close"),
    ("include/viaduct/c.h", "typedef int32_t viaduct_code;", "typedef int64_t viaduct_code;", "c typedef int32_t viaduct_code"),
    ("include/viaduct/c.h", "  int32_t kind; ", "  int64_t kind; ", "c struct viaduct_pin_info 3 int32_t kind"),
    ("python/viaduct/_core.pyi", "class RemotePin:", "class PinThere:", "python RemotePin: promised"),
    ("python/viaduct/_core.pyi", "def drain(self, timeout:", "def drain(self, *, timeout:", "python Agent.drain: 0 timeout"),
    ("python/viaduct/_core.pyi", "def undrain(", "def go_on(", "python Agent.undrain"),
)  # fmt: skip
# Breaks of the headers for C++.
CPP_BREAKS = (
    ("peer.h", "bool settled() const;", "bool settled();", "c++ function viaduct::Peer::settled bool () const"),
    ("note.h", "  std::string from", "  int age = 0;\n  std::string from", "c++ struct viaduct::Note of 56 bytes"),
    ("memory.h", "kReadWrite, kReadOnly,", "kReadWrite = 1, kReadOnly = 1,", "c++ value viaduct::MemoryAccess::kReadWrite = 0"),
    ("pin.h", "~Pin();", "virtual ~Pin();", "c++ struct viaduct::Pin of 8 bytes"),
    ("statistics.h", "kBounds.size() + 1;", "kBounds.size() + 2;", "c++ struct viaduct::Latencies of 224 bytes"),
    ("statistics.h", "  bool draining = false;", "", "c++ struct viaduct::Statistics of 720 bytes"),
)  # fmt: skip


class Tree(unittest.TestCase):
    """A tree with the sources of all promises."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        for name in SOURCES:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        for name in ("src/diag", "include/viaduct"):
            shutil.copytree(ROOT / name, self.root / name)
        (self.root / "tools").mkdir()

    def promise(self):
        (self.root / check_stability.STABLE).write_text(check_stability.text_of(self.root))

    def edit(self, name, old, new):
        path = self.root / name
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1))


class Stability(Tree):
    def setUp(self):
        super().setUp()
        # Each reading of the headers takes seconds.
        patch = unittest.mock.patch.object(cpp_headers, "is_readable", lambda: False)
        patch.start()
        self.addCleanup(patch.stop)

    def test_each_break_is_reported(self):
        self.promise()
        for name, old, new, complaint in BREAKS:
            with self.subTest(complaint):
                before = (self.root / name).read_text()
                self.edit(name, old, new)
                found = check_stability.check(self.root)
                self.assertEqual(len([one for one in found if complaint in one]), 1, found)
                (self.root / name).write_text(before)
        self.assertEqual(check_stability.check(self.root), [])

    def test_additions_break_nothing(self):
        self.promise()
        self.edit("docs/bench-flags.md", "  --block-sizes SIZE", "  --new-flag N\n  --block-sizes SIZE")
        self.edit("include/viaduct/c.h", "} viaduct_pin_info;", "  uint64_t more;\n} viaduct_pin_info;")
        self.assertEqual(check_stability.check(self.root), [])

    def test_nothing_is_promised_before_the_first_release(self):
        self.assertEqual(check_stability.check(self.root), [])

    def test_a_source_of_another_form_is_no_empty_promise(self):
        (self.root / "docs/metrics.md").write_text("# Metrics\n")
        with self.assertRaisesRegex(ValueError, "no promise of the kind metrics"):
            check_stability.text_of(self.root)


@unittest.skipUnless(cpp_headers.is_readable(), f"no {cpp_headers.COMPILER}")
class CppHeaders(Tree):
    def test_breaks_are_reported_and_additions_are_not(self):
        self.promise()
        for name, old, new, _ in CPP_BREAKS:
            self.edit(f"include/viaduct/{name}", old, new)
        self.edit("include/viaduct/peer.h", "std::string name() const;", "std::string name() const;\n  bool moved() const;")
        self.edit("include/viaduct/mark_stream.h", "struct Mark {", "struct Remark {\n  int days = 1;\n};\nstruct Mark {")
        found = check_stability.check(self.root)
        for complaint in (complaints := [complaint for *_, complaint in CPP_BREAKS]):
            self.assertEqual(len([one for one in found if complaint in one]), 1, found)
        self.assertEqual([one for one in found if not any(complaint in one for complaint in complaints)], [])

    def test_headers_that_do_not_compile_are_no_empty_promise(self):
        self.edit("include/viaduct/note.h", "struct Note {", "struct Note [")
        with self.assertRaisesRegex(ValueError, "cannot read include/viaduct"):
            check_stability.text_of(self.root)


if __name__ == "__main__":
    unittest.main()
