"""Checks kernels of PTX files from tests, with the command fencepost."""

import json
import os
import shutil
import subprocess


def check_ptx(ptx, launch=None, *flags):
    """Run "fencepost check" on a PTX file, and give its JSON report (docs/json.md).

    launch is the launch file (docs/launch.md); without it that beside the PTX file is taken. The command is looked for in PATH, and
    FENCEPOST names another. Raises AssertionError with the text of the report if something is found, and RuntimeError if something could
    not be checked.
    """
    command = shutil.which(os.environ.get("FENCEPOST", "fencepost"))
    if command is None:
        raise RuntimeError("the command fencepost is not in PATH; the variable FENCEPOST may name it")
    line = [command, "check", "--json", "-", "--color", "never", *flags, os.fspath(ptx)]
    if launch is not None:
        line[2:2] = ["--launch", os.fspath(launch)]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.strip())
    if done.returncode == 1:
        raise AssertionError(done.stderr.strip())
    return json.loads(done.stdout)
