"""look.py with|without < REPORT: checks a report that `viaduct.verify --json` printed.

The report is from a fresh system with or without numpy.
"""

import json
import sys

report = json.load(sys.stdin)
assert report["loopback"]["ok"], report["loopback"]
assert (report["packages"]["numpy"] is not None) == (sys.argv[1] == "with"), report["packages"]
assert report["packages"]["torch"] is None, report["packages"]
assert report["gpus"]["count"] == 0, report["gpus"]
