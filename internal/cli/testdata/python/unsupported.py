"""For pytest: a test that fails because its kernel holds an instruction that is not supported."""

from kernels import launch


def test_copies():
    launch("copies")
