#!/usr/bin/env python3
"""The checks find what they are for: each planted fault is reported, and a clean tree is not."""
import contextlib
import io
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import check_docs
import check_layers
import check_names
import test_results


def tree(files):
    root = pathlib.Path(tempfile.mkdtemp())
    unittest.addModuleCleanup(shutil.rmtree, root)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


class Layers(unittest.TestCase):
    def found(self, name, text):
        return check_layers.check(tree({name: text}))

    def test_the_arrow_points_down(self):
        for name, include in {
            "src/base/a.h": "core/op.h",
            "src/host/a.h": "core/op.h",
            "src/core/a.cc": "agent/agent_core.h",
            "src/core/b.cc": "backends/fake/fake.h",
            "src/backends/tcp/a.cc": "agent/agent_core.h",
            "src/backends/tcp/b.cc": "backends/local/gate.h",
            "src/backends/tcp/part/c.cc": "backends/local/gate.h",
            "src/measure/run/a.cc": "core/op.h",
            "src/measure/run/b.cc": "agent/agent_core.h",
            "src/measure/result/a.cc": "measure/run/run.h",
            "src/agent/session/a.cc": "agent/peers/peer_impl.h",
            "src/meet/embedded/a.cc": "meet/etcd/etcd.h",
            "src/base/a.cc": "base/net/address.h",
            "src/move/a.cc": "backends/tcp/wire.h",
            "apps/viaduct/main.cc": "core/op.h",
            "include/viaduct/a.h": "base/fd.h",
            "examples/a.cc": "base/fd.h",
        }.items():
            with self.subTest(name):
                self.assertEqual(len(self.found(name, f'#include "{include}"\n')), 1)

    def test_what_is_allowed_passes(self):
        for name, include in {
            "src/core/a.cc": "base/fd.h",
            "src/backends/tcp/a.cc": "backends/tcp/frame.h",
            "src/backends/tcp/b.cc": "core/backend.h",
            "src/backends/tcp/part/c.cc": "backends/tcp/frame.h",
            "src/backends/tcp/d.cc": "backends/tcp/part/frame.h",
            "src/agent/a.cc": "core/backend.h",
            "apps/viaduct/main.cc": "measure/run/run.h",
            "src/measure/run/a.cc": "viaduct/agent.h",
            "src/base/net/a.cc": "base/fd.h",
            "src/agent/a.cc": "agent/session/card.h",
            "src/backends/ofi/a.cc": "move/channel.h",
            "include/viaduct/a.h": "viaduct/b.h",
        }.items():
            with self.subTest(name):
                self.assertEqual(self.found(name, f'#include "{include}"\n'), [])

    def test_angle_brackets_hide_nothing(self):
        self.assertEqual(len(self.found("src/base/a.h", "#include <core/op.h>\n")), 1)

    def test_only_the_agent_reads_the_catalogue(self):
        self.assertEqual(len(self.found("src/core/a.cc", "core::backendCatalogue();\n")), 1)
        self.assertEqual(self.found("src/agent/a.cc", "core::backendCatalogue();\n"), [])

    def test_only_one_folder_includes_openssl(self):
        self.assertTrue(self.found("src/backends/tcp/hello.cc", "#include <openssl/hmac.h>"))
        self.assertFalse(self.found("src/base/net/crypto.h", "#include <openssl/sha.h>"))

    def test_a_folder_without_a_layer_is_refused(self):
        self.assertEqual(len(self.found("src/misc/a.cc", "int x;\n")), 1)
        self.assertEqual(len(self.found("src/measure/new/a.cc", "int x;\n")), 1)

    def test_a_layer_without_a_folder_is_found(self):
        root = pathlib.Path(check_layers.__file__).parents[1]
        self.assertEqual(check_layers.missing(root), [])
        self.assertTrue(check_layers.missing(tree({"src/base/a.cc": ""})))

    def test_only_its_own_folder_names_a_backend(self):
        line = 'if (backend == "tcp") return;\n'
        for name in ("src/agent/a.cc", "src/measure/proof/a.cc", "apps/viaduct/a.cc", "python/csrc/a.cc"):
            with self.subTest(name):
                self.assertEqual(len(self.found(name, line)), 1)
        for name in ("src/backends/tcp/a.cc", "src/agent/session/a_test.cc", "tests/app/a.cc"):
            with self.subTest(name):
                self.assertEqual(self.found(name, line), [])
        self.assertEqual(self.found("src/agent/a.cc", '// "tcp", for example\n'), [])
        # A literal with another meaning is allowed in the named file, and in no other.
        self.assertEqual(self.found("src/core/plan.cc", 'Side{"local"};\n'), [])
        self.assertEqual(len(self.found("src/core/plan_slice.cc", 'Side{"local"};\n')), 1)


class Names(unittest.TestCase):
    def found(self, files):
        return check_names.check(tree(files))

    def test_a_second_meaning_is_found(self):
        first = {"src/move/a.h": "class Batch final : public Base {\n};\n"}
        for text in (
            "struct Batch {\n",
            "  struct Batch {\n",
            "enum class Batch : std::uint8_t { kOne };\n",
            "template <class T>\nclass Batch {\n",
            "class VIADUCT_CAPABILITY(\"batch\") Batch {\n",
            "struct alignas(64) Owner::Batch {\n",
            "using Batch = std::vector<int>;\n",
        ):
            for file in ("src/agent/basis/b.cc", "src/backends/tcp/b.h", "src/core/b.h"):
                with self.subTest(text, file=file):
                    self.assertEqual(len(self.found({**first, file: text})), 1)
        self.assertEqual(len(self.found({"src/move/a.h": "struct A {\n};\nstruct A {\n"})), 1)
        self.assertEqual(len(self.found({**first, "include/viaduct/a.h": "struct Batch {\n"})), 1)

    def test_a_second_list_of_fields_is_found(self):
        first = {"src/move/a.h": "auto fields(base::Is<PathShare> auto& s) {\n"}
        second = {"src/measure/b.cc": "auto fields(base::Is<viaduct::PathShare> auto& s) {\n"}
        self.assertEqual(self.found(first), [])
        self.assertEqual(self.found(first | second),
                         ["src/move/a.h:1: PathShare already has a fields() at src/measure/b.cc:1"])
        other = {"src/measure/b.cc": "void describe(auto& json, base::Is<PathShare> auto& s) {\n"}
        self.assertEqual(self.found(first | other), [])

    def test_what_is_no_second_meaning_passes(self):
        first = {"src/move/a.h": "struct Batch {\n  enum class Kind { kOne };\n};\n"}
        for file, text in {
            "src/core/a.h": "struct Batch;\nclass Other {\n  friend struct Batch;\n",
            "src/core/b.cc": "using Kind = move::Batch::Kind;\nusing move::Batch;\n",
            "src/core/c.h": "// struct Batch {\n",
            "src/core/a_test.cc": "struct Batch {\n",
            "src/core/a_testing.h": "struct Batch {\n",
            "src/measure/run/a.h": "struct Batch {\n",
        }.items():
            with self.subTest(file):
                self.assertEqual(self.found({**first, file: text}), [])
        machines = {f"src/move/{one}.h": "  enum State {\n" for one in "ab"}
        self.assertEqual(self.found(machines), [])

    def test_the_tree_needs_its_exceptions(self):
        root = pathlib.Path(check_names.__file__).parents[1]
        self.assertEqual(check_names.missing(root), [])
        self.assertTrue(check_names.missing(tree({"src/core/a.h": "enum State {\n"})))


class Docs(unittest.TestCase):
    def test_a_broken_link_is_found(self):
        self.assertEqual(len(check_docs.check(tree({"a.md": "[b](b.md)"}))), 1)
        self.assertEqual(len(check_docs.check(tree({"a.md": "[b](b.md#no)", "b.md": "# Yes"}))), 1)

    def test_good_links_and_code_pass(self):
        text = "[b](b.md#what-it-is) [w](https://x.invalid/) `[not](a link)`"
        self.assertEqual(check_docs.check(tree({"d/a.md": text, "d/b.md": "# What it is"})), [])

    def test_a_quote_that_differs_from_its_file_is_found(self):
        source = "// README begins\nint x;\n// README ends\n"
        for quoted, faults in {"int x;\n": 0, "int y;\n": 1, "": 1}.items():
            page = f"<!-- the code of a.cc -->\n```cpp\n{quoted}```\n"
            with self.subTest(quoted):
                self.assertEqual(len(check_docs.check(tree({"a.md": page, "a.cc": source}))), faults)
                self.assertEqual(len(check_docs.check(tree({"a.md": page}))), 1)
        page = "<!-- the code of bench/a.cc -->\n```cpp\nint x;\n```\n"
        self.assertEqual(check_docs.check(tree({"a.md": page})), [])
        self.assertEqual(len(check_docs.check(tree({"a.md": page, "bench/b.cc": ""}))), 1)

    def test_a_block_that_nothing_tests_is_found(self):
        for block, faults in {
            "```python\nawait one()\n```": 0,
            "```python\none(\n```": 1,
            "```json\n{\"a\": 1}\n```": 0,
            "```json\n{a: 1}\n```": 1,
            "```sh\nif true; then echo yes; fi\n```": 0,
            "```sh\nif true; then echo yes\n```": 1,
            "```go\nvar x int\n```": 1,
            "<!-- fragment -->\n```go\nvar x int\n```": 0,
            "<!-- fragment -->\n```python\none(\n```": 0,
            "```text\none(\n```\n\n```\none(\n```": 0,
            "```\n$ one two\none(\n$ one \\\n  two\n```": 0,
            "```\n$ one 'two\nthree\n```": 1,
            "1. list\n   ```sh\n   if true\n   ```": 1,
            "```cpp\none(\n```": 0,
        }.items():
            with self.subTest(block):
                self.assertEqual(len(check_docs.check(tree({"a.md": block + "\n"}))), faults)

    def test_a_code_that_only_page_or_header_has_is_found(self):
        header = "enum class Code : std::uint8_t {\n  kInvalid,  // wrong\n  kBusy,\n};\n"
        for rows, faults in {"| `kInvalid` | a |\n| `kBusy` | b |\n": 0, "| `kBusy` | b |\n": 1, "| `kGone` | c |\n": 3}.items():
            with self.subTest(rows):
                root = tree({"include/viaduct/result.h": header, "docs/errors.md": rows})
                self.assertEqual(len(check_docs.check(root)), faults)

    def test_a_command_with_an_unknown_flag_is_found(self):
        flags = "## `viaduct bench`\n    --block-sizes SIZE\n## `viaduct kv bench`\nAs in viaduct bench:\n    --model M\n"
        for line, faults in {
            "viaduct bench --block_sizes 4K --help": 0,
            "viaduct bench --sizes 4K --model M": 2,
            "viaduct kv bench --block-sizes 4K \\\n    --model M --modle M": 1,
            "viaduct bench | sort --unknown": 0,
            "viaduct doctor --unknown": 0,
        }.items():
            with self.subTest(line):
                root = tree({"docs/bench-flags.md": flags, "a.md": f"    {line}\n"})
                self.assertEqual(len(check_docs.check(root)), faults)

    def test_a_hard_sentence_is_found(self):
        long = "Every " + "very " * 24 + "long one."
        for hard in (
            long,
            f"A short one. {long}",
            f"- an item\n- {long}\n",
            f"| cell | {long} |\n",
            "**Good.** Where no server answers, it ends.",
            "It ends.\nWhat arrived is dropped.",
            "1. Those that are gone.",
            "It turns the crank.",
            "It reads so many bytes.",
            "Its state [is\nof](a.md) the peer.",
        ):
            with self.subTest(hard):
                self.assertEqual(len(check_docs.check(tree({"a.md": hard}))), 1)

    def test_plain_sentences_and_what_is_no_prose_pass(self):
        twenty_five = "Every " + "very " * 22 + "short one."
        for plain in (
            twenty_five,
                        f"{twenty_five} {twenty_five}",
            f"*Short one.* {twenty_five}",
            f"- {twenty_five}\n- {twenty_five}\n",
            f"It prints `{'word ' * 30}`.",
            f"Its fields are {'`word`, ' * 30}`word`.",
            f"```\n{'word ' * 30}\n\nWhat came\n```\n",
            f"    $ {'word ' * 30}\n",
            "# What it is\n\nA thing in the background.",
            f"| {'1 ' * 20} | {'2 ' * 20} |\n",
        ):
            with self.subTest(plain):
                self.assertEqual(check_docs.check(tree({"b.md": "", "a.md": plain})), [])

    def test_a_generated_page_has_sentences_in_lower_case(self):
        page = "# A\n\n<!-- Generated: a program -->\n\n| flag | {} |\n"
        for about, found in (("what the path must be", 1), ("required path", 0)):
            self.assertEqual(len(check_docs.check(tree({"a.md": page.format(about)}))), found)


TOOLS = pathlib.Path(__file__).resolve().parent


class Locks(unittest.TestCase):
    """check_locks.sh over one guarded number and a function that adds to it."""

    def code(self, body):
        root = tree({
            "src/base/mutex.h": (TOOLS.parent / "src/base/mutex.h").read_text(),
            "src/base/a.cc": f"""#include "base/mutex.h"
                struct A {{
                  void add() {{ {body} }}
                  viaduct::base::Mutex mutex;
                  int number VIADUCT_GUARDED_BY(mutex) = 0;
                }};
                void use(A& a) {{ a.add(); }}"""})
        done = subprocess.run([TOOLS / "check_locks.sh", root], capture_output=True)
        if done.returncode == 77:
            self.skipTest(done.stdout.decode())
        return done.returncode

    def test_a_lock_that_is_held(self):
        self.assertEqual(self.code("const viaduct::base::Lock lock(mutex); ++number;"), 0)

    def test_a_lock_that_is_missing(self):
        self.assertEqual(self.code("++number;"), 1)

    def test_a_lock_that_is_not_let_go_of(self):
        self.assertEqual(self.code("mutex.lock(); ++number;"), 1)


class Results(unittest.TestCase):
    def results(self, **runs):
        return tree({f"{name}.xml": f"<testsuite>{text}</testsuite>" for name, text in runs.items()})

    def sum_of(self, folder):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = test_results.sum_up(folder)
        return code, printed.getvalue()

    SKIPPED = '<testcase name="A/b.c  # f() = [1]" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>'

    def test_a_test_that_ran_as_one_of_two_users_passed(self):
        folder = self.results(user=self.SKIPPED, root=self.SKIPPED.replace("notrun", "run"))
        code, printed = self.sum_of(folder)
        self.assertEqual(code, 0)
        self.assertIn("1 tests: 1 passed, 0 skipped or disabled, 0 failed", printed)

    def test_what_failed_is_printed_last(self):
        failed = '<testcase name="bad" status="fail"><system-out>why</system-out></testcase>'
        missing = '<testcase name="gone" status="notrun"><skipped message="Unable to find executable"/></testcase>'
        code, printed = self.sum_of(self.results(user=failed + missing, root=failed.replace("fail", "run")))
        self.assertEqual(code, 1)
        self.assertIn("bad failed (user); the end of what it printed:\nwhy", printed)
        self.assertTrue(printed.endswith("0 passed, 0 skipped or disabled, 2 failed\n  failed: bad\n  failed: gone\n"))

    def test_no_results_are_no_success(self):
        self.assertEqual(self.sum_of(self.results())[0], 1)

    def test_skipped_tests_are_matched_by_their_whole_names(self):
        pattern = test_results.skipped(self.results(user=self.SKIPPED) / "user.xml")
        self.assertTrue(re.match(pattern, "A/b.c  # f() = [1]"))
        self.assertFalse(re.match(pattern, "A/bbc  # f() = [1]"))


if __name__ == "__main__":
    unittest.main()
