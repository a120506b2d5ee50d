"""What fencepost.check() tells, and when. An assertion that fails is exit code 4 of the run."""

import os
import subprocess
import sys
import warnings

import fencepost
from kernels import launch


def kinds(function, *args, **options):
    """The findings that check() raises, by severity and kind."""
    try:
        with fencepost.check(**options):
            function(*args)
    except fencepost.Error as error:
        assert str(error) == "\n\n".join(f.text for f in error.findings)
        return [f"{f.severity} {f.kind}" for f in error.findings]
    return []


assert fencepost.active()
with fencepost.check():
    pass  # the device is not in use yet: a child may still be forked
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
else:
    launch("adds")
    os._exit(0)

assert kinds(launch, "adds") == []
assert kinds(launch, "stores") == ["error unordered"]
assert kinds(launch, "adds") == []
assert kinds(launch, "stores") == ["error unordered"], "it occurs again"
launch("loads")
assert kinds(launch, "adds") == [], "what happened before"

try:
    with fencepost.check():
        launch("stores")
except fencepost.Error as error:
    assert "occurred again" in str(error) and "3 occurrences" in str(error), error
    assert "kernels.py:" in str(error), "where it was launched"

with fencepost.check() as found:
    launch("same")
    assert found == []
assert [(f.severity, f.kind) for f in found] == [("warning", "same-value")]
assert kinds(launch, "same", fail_on="warning") == ["warning same-value"]
try:
    with fencepost.check(fail_on="remark"):
        pass
    raise AssertionError("a severity that does not exist")
except ValueError:
    pass


def fails():
    launch("stores")
    raise KeyError("own")


try:
    with fencepost.check():
        fails()
except fencepost.Error as error:
    assert isinstance(error.__cause__, KeyError)
try:
    with fencepost.check():
        raise KeyError("own")
except KeyError:
    pass

with fencepost.check() as found:  # the inner one has raised the error, and hands the warning on
    assert kinds(lambda: (launch("stores"), launch("same"))) == ["error unordered"]
assert [f.kind for f in found] == ["same-value"]

with fencepost.check() as found:  # another process's
    subprocess.run([sys.executable, "-c", "from kernels import launch; launch('stores')"], check=True, cwd=os.path.dirname(os.path.abspath(__file__)))
assert found == []

with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for _ in range(2):
        with fencepost.check():
            try:
                launch("copies")
            except RuntimeError:
                pass
assert len(told) == 1 and "cp.async" in str(told[0].message), [str(w.message) for w in told]
