#!/usr/bin/env python3
"""Checks a site that tools/site/make_site.py has made.

Links: each leads to a file of the site and to an id on its page. Names: the reference has every public
name that ctags finds in the headers, and every name of the Python stub. Browser: at 400 and 1,200 pixels
no page scrolls sideways, the menu can be reached, wide tables scroll in themselves, a search finds a page,
and nothing is asked from a network.

usage: check.py SITE [--screenshots FOLDER]
Without ctags or Chromium, their part is skipped, with a message.
"""
import ast
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from html.parser import HTMLParser

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTHS = (400, 1200)


class Page(HTMLParser):
    """The ids and the links of a page."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.append((tag, value))


def broken_links(site):
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for tag, link in page.links:
            target, _, anchor = link.partition("#")
            name = path.relative_to(site)
            if re.match(r"[a-z]+:", link):
                if tag != "a" and not link.startswith("data:"):
                    yield f"{name}: {link} comes from a network"
                continue
            there = (path.parent / urllib.parse.unquote(target.partition("?")[0])).resolve() if target else path
            if not there.is_file():
                yield f"{name}: {link} leads nowhere"
            elif anchor and there in pages and urllib.parse.unquote(anchor) not in pages[there].ids:
                yield f"{name}: {link}: no such id"


# ---- Names ----

def header_names():
    """The public names of the headers by file, as ctags sees them."""
    command = ["ctags", "--output-format=json", "--fields=+a", "--languages=C++", "--langmap=C++:+.h",
               "--kinds-C++=+p-N-z", "-I", "VIADUCT_C_API", "-f", "-"]
    headers = sorted((ROOT / "include/viaduct").glob("*.h"))
    tags = subprocess.run([*command, *map(str, headers)], capture_output=True, text=True, check=True).stdout
    for tag in map(json.loads, tags.splitlines()):
        scope = tag.get("scope", "")
        inner = re.search(r"\b(agent|core|kv|detail)\b", scope)
        if not inner and tag.get("access") != "private" and tag["kind"] != "namespace":
            yield pathlib.Path(tag["path"]).stem, tag["name"], scope


def stub_names():
    """The public names of the Python stub, and those of its classes."""
    for node in ast.parse((ROOT / "python/viaduct/_core.pyi").read_text()).body:
        if getattr(node, "name", "_")[0] != "_":
            for one in (node, *node.body):
                name = one.target.id if isinstance(one, ast.AnnAssign) else getattr(one, "name", "_")
                if name[0] != "_":
                    yield name


def missing_names(site):
    internal = {"viaduct", "viaduct_sized", "Table", "One"} | {
        "VIADUCT_CAT", "VIADUCT_CAT_2", "VIADUCT_TRY_2", "VIADUCT_C_API", "VIADUCT_C_H"}
    wanted = {"python": set(stub_names())}
    for stem, name, scope in header_names():
        unnamed = name.startswith(("operator", "__anon")) or re.search(r"::(Table|One)$", scope)
        if name not in internal and not unnamed:
            wanted.setdefault(stem, set()).add(name.lstrip("~"))
    for stem, names in wanted.items():
        for name in sorted(names - signatures(site / f"reference/{stem}.html")):
            yield f"reference/{stem}.html has no {name}"


def signatures(page):
    """The names that a page of the reference explains."""
    name = r'class="sig-name descname">.*?<span class="pre">~?([^<]*?)(?:\(.*)?</span>'
    return set(re.findall(name, page.read_text()))


# ---- Browser ----

class Browser:
    """Chromium without a window, over a pipe. Usable as a context."""

    def __init__(self, program, folder):
        ours, theirs = os.pipe(), os.pipe()
        self.output, self.input = os.fdopen(ours[1], "wb", 0), os.fdopen(theirs[0], "rb")
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}"]
        script = f'exec "$@" 3<&{ours[0]} 4>&{theirs[1]}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", program, *arguments, "--remote-debugging-pipe", "about:blank"],
            pass_fds=(ours[0], theirs[1]), stderr=subprocess.DEVNULL,
        )
        os.close(ours[0]), os.close(theirs[1])
        self.number, self.session, self.requests = 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable"), self.call("Network.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def message(self):
        """The next message of the browser. It is an error if there is none."""
        text = bytearray()
        while (byte := self.input.read(1)) != b"\0":
            if not byte:
                raise RuntimeError("Chromium has ended")
            text += byte
        message = json.loads(text)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        return message

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.output.write(json.dumps(message).encode() + b"\0")
        while (answer := self.message()).get("id") != self.number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def open(self, url, width):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url=url)
        while self.message().get("method") != "Page.loadEventFired":
            pass

    def value(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


# The faults of the page that is open.
FAULTS = """(() => {
  const found = [], width = window.innerWidth;
  if (document.documentElement.scrollWidth > width) {
    const wide = [...document.querySelectorAll('article *')].find(
        (one) => one.getBoundingClientRect().right > width + 1 && !one.closest('.table-wrapper, pre'));
    found.push(`scrolls sideways: ${document.documentElement.scrollWidth}, ${wide && wide.outerHTML.slice(0, 90)}`);
  }
  for (const table of document.querySelectorAll('article table')) {
    const box = table.closest('.table-wrapper') || table.parentElement;
    if (table.offsetWidth > box.clientWidth + 1 && !['auto', 'scroll'].includes(getComputedStyle(box).overflowX))
      found.push(`a table of ${table.offsetWidth} pixels does not scroll in itself`);
  }
  const menu = document.querySelector('.sidebar-drawer');
  const button = document.querySelector('label.nav-overlay-icon');
  const visible = (one) => {
    const box = one.getBoundingClientRect();
    return box.width > 0 && box.left >= 0 && box.right <= width;
  };
  menu.style.transition = 'none';
  if (!visible(menu)) {
    if (!visible(button)) found.push('neither the menu nor its button is visible');
    button.click();
    if (!visible(menu)) found.push('the button does not open the menu');
    button.click();
  }
  return found;
})()"""

# The first result of a search, as soon as it is there.
FIRST_RESULT = """new Promise((found) => {
  const look = () => {
    const one = document.querySelector('#search-results li a');
    if (one) found(one.href);
    return one;
  };
  if (!look()) new MutationObserver(look).observe(document.body, {childList: true, subtree: true});
})"""
SHOWN = ("index.html", "docs/bench-flags.html", "reference/agent.html", "reference/python.html", "search.html")
SEARCHES = {"lease": "lease", "exportCard": "reference/agent", "viaduct_agent_open": "reference/c"}


def faults_in_browser(site, program, screenshots):
    with tempfile.TemporaryDirectory() as folder, Browser(program, folder) as browser:
        for path in sorted(site.rglob("*.html")):
            for width in WIDTHS:
                browser.open(path.as_uri(), width)
                for fault in browser.value(FAULTS):
                    yield f"{path.relative_to(site)} at {width} pixels: {fault}"
        for words, wanted in SEARCHES.items():
            browser.open((site / "search.html").as_uri() + f"?q={words}", WIDTHS[0])
            first = browser.value(FIRST_RESULT)
            if wanted not in first:
                yield f"a search for {words} finds {first} first"
        for url in set(browser.requests):
            if not url.startswith(("file:", "data:", "about:")):
                yield f"a page asks for {url}"
        for name in SHOWN if screenshots else ():
            for width in WIDTHS:
                browser.open((site / name).as_uri(), width)
                browser.screenshot(screenshots / f"{name.replace('/', '-')}-{width}.png")


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    screenshots = pathlib.Path(sys.argv[3]) if sys.argv[2:3] == ["--screenshots"] else None
    found = list(broken_links(site))
    if shutil.which("ctags"):
        found += missing_names(site)
    else:
        print("skipped: no ctags, for the names of the reference")
    if program := shutil.which("chromium"):
        found += faults_in_browser(site, program, screenshots)
    else:
        print("skipped: no Chromium, for the widths and the search")
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
