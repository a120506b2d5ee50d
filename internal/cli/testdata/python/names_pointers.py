"""Objects that give Triton a pointer and no shape."""

# named: out + 256 bytes; out + 256 bytes

import runpy

runpy.run_path("../../examples/python/triton_numpy_racy.py")
