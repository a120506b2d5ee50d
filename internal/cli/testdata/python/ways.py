"""Launches a racing kernel in a process that comes about in the way named by the argument."""

import multiprocessing
import os
import subprocess
import sys
import threading

from kernels import launch

if __name__ == "__main__":
    way = sys.argv[1]
    if way == "subprocess":
        subprocess.run([sys.executable, __file__, "itself"], check=True)
    elif way == "emptied":
        subprocess.run([sys.executable, __file__, "itself"], env={}, check=True)
    elif way == "own":
        subprocess.run([sys.executable, __file__, "itself"], env={b"PYTHONPATH": b"/", "A": "B"}, check=True)
    elif way == "cleared":
        os.environ.clear()
        subprocess.run([sys.executable, __file__, "itself"], check=True)
    elif way == "blind":
        subprocess.run([sys.executable, "-I", "-c", ""], check=True)
    elif way in multiprocessing.get_all_start_methods():
        process = multiprocessing.get_context(way).Process(target=launch, args=("stores",))
        process.start()
        process.join()
        sys.exit(process.exitcode)
    elif way == "thread":
        thread = threading.Thread(target=launch, args=("stores",))
        thread.start()
        thread.join()
    else:
        launch("stores")
