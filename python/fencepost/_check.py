"""What a running script may ask the checker."""

import contextlib
import os
import threading
import warnings
from collections import namedtuple

_SEVERITIES = ("warning", "error")


class Finding(namedtuple("Finding", "id kind severity text")):
    """A finding. text is what the report says of it; id and kind are those of the report."""

    __slots__ = ()

    def __str__(self):
        return self.text


class Error(AssertionError):
    """Something was found. findings are the findings, the gravest first."""

    def __init__(self, findings):
        self.findings = list(findings)
        super().__init__("\n\n".join(f.text for f in self.findings))


def active():
    """Say whether "fencepost run" watches this process."""
    return bool(os.environ.get("FENCEPOST_SOCKET") and os.environ.get("FENCEPOST_LIBRARIES"))


class _Log:
    """All that this process was told. The checker tells each thing once; parts of a script may overlap."""

    def __init__(self):
        self._lock = threading.Lock()
        self._findings, self._not_checked = [], []
        self._raised = set()  # indices of findings

    def now(self):
        """Ask for news, and give the place behind them."""
        from fencepost import _device

        with self._lock:
            if _device.in_use():
                told = _device.Device().findings()
                self._findings += (Finding(f["id"], f["kind"], f["severity"], f["text"]) for f in told["findings"])
                self._not_checked += told["not_checked"]
            return len(self._findings), len(self._not_checked)

    def since(self, place):
        """Give the findings behind a place that were not raised, and what was not checked there."""
        self.now()
        with self._lock:
            found = [f for i, f in enumerate(self._findings) if i >= place[0] and i not in self._raised]
            return found, self._not_checked[place[1] :]

    def take(self, findings):
        """Note that findings are raised: who encloses a part of a script that handled them is not told again."""
        with self._lock:
            self._raised.update(i for i, f in enumerate(self._findings) if any(f is g for g in findings))


log = _Log()


def grave(findings, fail_on):
    """Give the findings of a severity or a graver one."""
    if fail_on not in _SEVERITIES:
        raise ValueError(f"fail_on is one of {', '.join(_SEVERITIES)}, not {fail_on!r}")
    least = _SEVERITIES.index(fail_on)
    return [f for f in findings if _SEVERITIES.index(f.severity) >= least]


@contextlib.contextmanager
def check(fail_on="error"):
    """Raise Error for what is found in the body of a with statement.

    The value of the statement is a list, which holds all findings of the body when it has ended, of lesser severity too. What was
    not checked there is told by a warning. An exception of the body goes on where nothing was found, and else is the cause of Error.
    Statements may be nested: what an inner one has raised is not the outer one's any more.
    """
    if not active():
        raise RuntimeError('fencepost.check() asks the checker: start the script with "fencepost run python3 SCRIPT"')
    grave([], fail_on)
    found = []
    place = log.now()
    try:
        yield found
    except Exception as error:
        _end(found, place, fail_on, error)
        raise
    _end(found, place, fail_on, None)


def _end(found, place, fail_on, cause):
    news, not_checked = log.since(place)
    found += news
    failing = grave(news, fail_on)
    if failing:
        log.take(failing)
        raise Error(failing) from cause
    for text in not_checked:
        warnings.warn("fencepost: not checked: " + text, stacklevel=4)
