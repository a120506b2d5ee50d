"""A pytest plugin that fails a test in which something is found.

The mark "fencepost" asks for it by test, the option --fencepost for all. Under "fencepost run" the plugin is known without being
installed. Anywhere else it does nothing, and says so once.
"""

import warnings

import pytest

from fencepost import _check, _ptx

_HOW = 'fencepost: nothing was checked: start the tests with "fencepost run python3 -m pytest"'


def pytest_addoption(parser):
    group = parser.getgroup("fencepost")
    group.addoption("--fencepost", action="store_true", help="fail each test in which Fencepost finds an error")
    group.addoption("--fencepost-fail-on", choices=("warning", "error"), default="error", help="the least severity that fails a test")


def pytest_configure(config):
    config.addinivalue_line("markers", 'fencepost(fail_on="error"): fail the test when Fencepost finds an error in it, or a warning')
    config.pluginmanager.register(_Plugin(config), "fencepost-tests")


@pytest.fixture
def fencepost_ptx():
    """A function that checks a PTX file: fencepost_ptx("kernel.ptx", "launch.toml"). The test fails if something is found."""

    def check(ptx, launch=None, *flags):
        __tracebackhide__ = True
        try:
            return _ptx.check_ptx(ptx, launch, *flags)
        except AssertionError as found:
            text = str(found)
        pytest.fail(text, pytrace=False)  # outside, where no other exception is being handled

    return check


class _Plugin:
    def __init__(self, config):
        self._config = config
        self._place = None
        self._idle = config.getoption("--fencepost") and not _check.active()

    def _least(self, item):
        """Give the severity that fails a test, None when it is not to be watched."""
        mark = item.get_closest_marker("fencepost")
        if mark is None and not self._config.getoption("--fencepost"):
            return None
        if not _check.active():
            self._idle = True
            return None
        return mark.kwargs.get("fail_on", "error") if mark else self._config.getoption("--fencepost-fail-on")

    def _judge(self, item, outcome):
        """Fail a phase of a test whose own result is at hand."""
        least = self._least(item)
        if least is None or self._place is None:
            return
        found, not_checked = _check.log.since(self._place)
        self._place = _check.log.now()
        failing = _check.grave(found, least)
        for text in not_checked:
            warnings.warn("fencepost: not checked: " + text, stacklevel=2)
            if outcome.excinfo is not None:
                item.add_report_section("call", "fencepost", "not checked: " + text)  # the failure may come of that
        if not failing:
            return
        _check.log.take(failing)
        text = "\n\n".join(f.text for f in failing)
        if outcome.excinfo is None:
            outcome.force_exception(pytest.fail.Exception(text, pytrace=False))
        else:
            item.add_report_section("call", "fencepost", text)  # below the failure that it may well explain

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        self._place = None
        if self._least(item) is not None:
            self._place = _check.log.now()
        self._judge(item, (yield))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item):
        self._judge(item, (yield))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item):
        self._judge(item, (yield))

    def pytest_terminal_summary(self, terminalreporter):
        if self._idle:
            terminalreporter.write_line(_HOW)
