"""Imported by every Python interpreter that "fencepost run" starts; makes its GPU packages work on the emulated GPU."""

import os
import sys


def _next():
    """Import the sitecustomize that this one hides, if the environment has one."""
    import importlib.machinery
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    path = [p for p in sys.path if os.path.abspath(p or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


# Older versions run as they are: this module must be readable by all.
if sys.version_info >= (3, 9) and os.environ.get("FENCEPOST_SOCKET"):
    import fencepost._start

    fencepost._start.install()
if sys.version_info >= (3, 5):
    _next()
