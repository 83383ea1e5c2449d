"""Reads the report of `python -m viaduct.verify --json` from a new Debian 12: look.py with|without < REPORT"""

import json
import sys

report = json.load(sys.stdin)
assert report["loopback"]["ok"], report["loopback"]
assert (report["packages"]["numpy"] is not None) == (sys.argv[1] == "with"), report["packages"]
assert report["packages"]["torch"] is None, report["packages"]
assert report["gpus"]["count"] == 0, report["gpus"]
