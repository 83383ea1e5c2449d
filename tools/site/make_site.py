#!/usr/bin/env python3
"""Makes a site of README.md, docs/ and the public headers, which a browser reads from the disk.

The pages stay where the repository has them, so that their links work there and here. A link to a header
leads to its page of the reference, and one to another file or folder to a page with its content. The
menu has the sections of docs/README.md, each with the pages that it links. A page that no section links
stands below the page of its folder.

usage: make_site.py MODULE [OUT]     MODULE is the folder of the built _core, OUT is build/site
"""
import importlib
import os
import pathlib
import re
import shutil
import sys
import tempfile

from sphinx.application import Sphinx

import reference

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?P<code>```.*?```|`[^`\n]*`)|(?P<text>\[(?:[^\]`]|`[^`]*`)*\])\((?P<target>[^)\s]+)\)", re.S)
SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.M | re.S)
LANGUAGES = {".cc": "cpp", ".c": "c", ".py": "python", ".json": "json", ".yml": "yaml", ".sh": "sh"}


class Source:
    """The folder that Sphinx reads. Every page has the path that it has in the repository."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        documents = sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")])
        self.documents = [str(path.relative_to(root)) for path in documents]
        # The page of each file or folder that a link may name. "index" is the first page of a site.
        self.pages = {name: name.removesuffix(".md") for name in self.documents} | {"README.md": "index"}
        self.markdown = set(self.pages.values())
        self.headers = sorted(root.glob("include/viaduct/*.h"))
        self.pages |= {str(path.relative_to(root)): f"reference/{path.stem}" for path in self.headers}
        self.pages["include/viaduct"] = "reference/cxx"
        self.below = {}  # the pages that the menu has below a page

    def write(self, page, text):
        path = self.folder / (page + (".md" if page in self.markdown else ".rst"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def page(self, path):
        """The page to which a link to a file or folder of the repository leads."""
        name = str(path.relative_to(self.root))
        known = self.pages.get(name) or self.pages.get(f"{name}/README.md")
        if known is None and path.is_dir():
            known = self.pages[name] = f"{name}/index"
            self.markdown.add(known)
            self.write(known, self.listing(name, path))
        elif known is None:
            known = self.pages[name] = name
            code = f".. code-block:: {LANGUAGES.get(path.suffix, 'text')}\n\n" + reference.indent(path.read_text(), 3)
            self.write(known, f":orphan:\n\n{reference.title(name, '=')}{code}\n")
        return known

    def listing(self, name, folder):
        entries = [one for one in sorted(folder.iterdir()) if one.is_file() and one.name[0] not in "._"]
        links = [
            f"- [{'' if one.suffix == '.md' else one.name}]({self.link(one, f'{name}/index')})" for one in entries
        ]
        return f"---\norphan: true\n---\n\n# {name}/\n\n" + "\n".join(links) + "\n"

    def link(self, path, page):
        """The target of a link to a file or folder of the repository, on a page."""
        there = self.page(path)
        relative = os.path.relpath(there, os.path.dirname(page) or ".")
        return relative + ".md" if there in self.markdown else relative

    def linked(self, name, text):
        """A document with links to pages of the site in the place of those to files."""
        def link(match):
            target, hash_sign, heading = (match["target"] or "").partition("#")
            path = (self.root / name).parent / target
            if match["code"] or not target or not path.exists():
                return match[0]
            return f"{match['text']}({self.link(path.resolve(), self.pages[name])}{hash_sign}{heading})"

        return LINK.sub(link, text)

    def write_documents(self):
        menu = self.menu()
        for name in self.documents:
            text = self.linked(name, (self.root / name).read_text())
            if name == "README.md":
                text += "".join(toctree(pages, caption) for caption, pages in menu)
            self.write(self.pages[name], text + toctree(self.below.get(self.pages[name], ())))
        for page in set(self.below) - set(self.pages[name] for name in self.documents):
            with open(self.folder / f"{page}.md", "a") as listing:
                listing.write(toctree(self.below[page]))

    def menu(self):
        """The sections of the menu: their names and pages."""
        start, shown, sections = self.root / "docs/README.md", {"index", "docs/README"}, [("", ["docs/README"])]

        def add(pages):
            new = [page for page in dict.fromkeys(pages) if page not in shown]
            shown.update(new)
            return new

        for caption, text in SECTION.findall(start.read_text()):
            targets = [match["target"].partition("#")[0] for match in LINK.finditer(text) if match["target"]]
            paths = [(start.parent / target).resolve() for target in targets if not re.match("[a-z]+:", target)]
            sections.append((caption, add(self.page(path) for path in paths if path.exists())))
        for page in [page for _, pages in sections for page in pages]:
            folder = os.path.dirname(page)
            if folder not in ("", "docs"):
                self.below[page] = add(p for p in self.pages.values() if os.path.dirname(p) == folder)
        sections.append(("Reference", ["reference/cxx", "reference/c", "reference/python"]))
        sections.append(("Project", add(self.pages[name] for name in self.documents if "/" not in name)))
        return sections

    def write_reference(self, package):
        headers, documents = [reference.Header(path) for path in self.headers], set(self.documents)
        names = {
            domain: reference.names_of([one for one in headers if one.domain == domain]) for domain in ("cpp", "c")
        }
        overview = reference.title("C++: headers", "=")
        for header in headers:
            role = "cpp:any" if header.domain == "cpp" else "c:type"
            words = reference.Words(names[header.domain], documents, role)
            self.write(self.pages[f"include/viaduct/{header.name}"], reference.header_page(header, words))
            if header.domain == "cpp":
                about = header.introduction.replace("\n", " ").split(" Threads: ")[0]
                overview += f":doc:`{header.name} <{header.name.removesuffix('.h')}>`\n   {words.rst(about)}\n\n"
        pages = [header.name.removesuffix(".h") for header in headers if header.domain == "cpp"]
        self.write("reference/cxx", overview + ".. toctree::\n   :hidden:\n\n   " + "\n   ".join(pages) + "\n")
        words = reference.Words(package.names, documents, "py:obj")
        self.write("reference/python", reference.python_page(package, words))


def toctree(pages, caption=""):
    lines = (f":caption: {caption}\n" if caption else "") + "\n" + "".join(f"/{page}\n" for page in pages)
    return f"\n\n```{{toctree}}\n:hidden:\n{lines}```\n" if pages else ""


def package_of(built, folder):
    """Imports the Python package from its source and the folder of its compiled module."""
    shutil.copytree(ROOT / "python/viaduct", folder / "viaduct", ignore=shutil.ignore_patterns("__pycache__"))
    for module in pathlib.Path(built).glob("_core*.so"):
        shutil.copy(module, folder / "viaduct")
    sys.path.insert(0, str(folder))
    return reference.Package(importlib.import_module("viaduct"), ROOT / "python/viaduct")


def configuration():
    return {
        "project": "Viaduct",
        "extensions": ["myst_parser"],
        "root_doc": "index",
        "html_theme": "furo",
        "html_title": "Viaduct",
        "html_static_path": [str(pathlib.Path(__file__).with_name("style.css"))],
        "html_css_files": ["style.css"],
        "html_show_search_summary": False,  # it would fetch pages, which a browser refuses for file://
        "html_copy_source": False,
        "html_show_sphinx": False,
        "html_show_copyright": False,
        "highlight_language": "none",
        "myst_heading_anchors": 6,
        "myst_ref_domains": ["std"],
        "suppress_warnings": ["misc.highlighting_failure"],  # output with "..." is no JSON
    }


def main():
    out = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "build/site"
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as work:
        source = Source(ROOT, pathlib.Path(work) / "source")
        source.write_documents()
        source.write_reference(package_of(sys.argv[1], pathlib.Path(work) / "package"))
        app = Sphinx(
            source.folder, None, out, pathlib.Path(work) / "doctrees", "html", configuration(),
            status=None, warningiserror=True, keep_going=True,
        )
        app.build()
    print(f"{out / 'index.html'}: {len(app.env.found_docs)} pages")
    return app.statuscode


if __name__ == "__main__":
    sys.exit(main())
