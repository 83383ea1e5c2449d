#!/usr/bin/env python3
"""run_page.py accepts a page that is right, and finds each fault of a page that is not."""
import pathlib
import tempfile
import unittest

import run_page

RIGHT = """
<!-- file one.txt -->
```sh
4 apples
```

<!-- terminal first, left running -->
```sh
mkfifo gate
echo waiting; cat gate
```

<!-- terminal first prints -->
```
waiting
```

<!-- terminal second -->
```sh
cat one.txt > gate
```

<!-- terminal first prints -->
```
waiting
4 app...
```

<!-- terminal second -->
```sh
rm gate one.txt
```
"""


class Pages(unittest.TestCase):
    def run_page(self, text):
        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w", suffix=".md") as page:
            page.write(text)
            page.flush()
            run_page.run(pathlib.Path(page.name), pathlib.Path(folder))

    def refuse(self, text, why):
        with self.assertRaisesRegex(run_page.Failure, why):
            self.run_page(text)

    def output(self, printed, shown, note=""):
        return f"```sh\nprintf '{printed}'\n```\n\n{note}\n```\n{shown}\n```\n"

    def test_a_right_page_passes(self):
        self.run_page(RIGHT)

    def test_other_output_is_found(self):
        self.refuse(RIGHT.replace("waiting\n4 app...", "waiting\n5 app..."), "no line '5 app...'")
        self.refuse(RIGHT.replace("waiting\n4 app...", "4 app...\nwaiting"), "no line 'waiting'")

    def test_an_exit_code_is_found(self):
        self.refuse("```sh\nfalse\n```\n", "exit code 1")
        self.refuse("```sh\nexit 3\n```\n", "exit code of the shell")

    def test_a_file_that_stays_is_found(self):
        self.refuse(RIGHT.replace("rm gate one.txt", "rm gate"), "leaves one.txt")

    def test_a_block_of_code_without_a_comment_is_found(self):
        self.refuse("```python\nx = 1\n```\n", "without a comment")

    def test_figures_vary_only_where_the_page_says_so(self):
        self.run_page(self.output("a  12.5 b 3%%\\n", "a 9 b 40%", "<!-- figures vary -->"))
        self.run_page(self.output("a - none\\n", "a 9 <10%", "<!-- figures vary -->"))
        self.refuse(self.output("a 12.5\\n", "a 9"), "no line 'a 9'")
        self.refuse(self.output("a b\\n", "a 9", "<!-- figures vary -->"), "no line 'a 9'")


if __name__ == "__main__":
    unittest.main()
