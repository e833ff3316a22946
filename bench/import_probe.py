"""Prints how long `import MODULE` takes in a fresh process (ms) and what the process then holds (MB), as JSON."""

import sys
import time

began = time.perf_counter()
__import__(sys.argv[1])
elapsed = time.perf_counter() - began

import json  # noqa: E402 - after the measured import, so that it carries its own weight

from memory import status_megabytes  # noqa: E402

with open(sys.argv[2], "w", encoding="utf-8") as output:
    rows = ({"case": "import_wall", "value": elapsed * 1e3, "unit": "ms"},)
    rows += ({"case": "import_rss", "value": status_megabytes("VmRSS"), "unit": "MB"},)
    for row in rows:
        print(json.dumps(row), file=output)
