"""Fencepost finds data races and other concurrency errors of GPU programs without a GPU.

Run a script with "fencepost run python3 script.py"; nothing in the script has to change. See docs/python.md.
"""
