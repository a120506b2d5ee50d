"""For pytest. The name of a test says what becomes of it: all, with --fencepost; marked, by its mark alone."""

import pytest

import fencepost
from kernels import launch


def test_passes_clean():
    launch("adds")


def test_fails_race():
    launch("stores")


def test_fails_race_again():
    launch("stores")


def test_passes_warning():
    launch("same")


@pytest.mark.fencepost(fail_on="warning")
def test_fails_marked_warning():
    launch("same")


@pytest.mark.fencepost
def test_fails_marked():
    launch("stores")


@pytest.mark.xfail(strict=True)
def test_xfails_race():
    launch("stores")


def test_passes_handled():
    with pytest.raises(fencepost.Error):
        with fencepost.check():
            launch("stores")


def test_fails_itself():
    launch("stores")
    raise KeyError("own")


@pytest.fixture
def racy():
    launch("stores")


def test_errors_fixture(racy):
    launch("adds")
