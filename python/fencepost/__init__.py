"""Fencepost finds data races and other concurrency errors of GPU programs without a GPU.

Run a script with "fencepost run python3 script.py"; nothing in the script has to change. See docs/python.md.

check() lets a script ask what was found in a part of it; plugin.py lets pytest ask for each test.
"""

from fencepost._check import Error, Finding, active, check

__all__ = ["Error", "Finding", "active", "check"]
