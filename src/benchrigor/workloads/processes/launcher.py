"""Runs a command, and writes its peak memory in bytes to a file descriptor.

On Linux a process starts with the peak of the one that started it: that of a bare interpreter with
this file is small. Only the standard library is needed.
"""

import os
import sys

if __name__ == "__main__":
    descriptor, argv = int(sys.argv[1]), sys.argv[2:]
    os.set_inheritable(descriptor, False)
    pid = os.posix_spawnp(argv[0], argv, os.environ)
    _, _, usage = os.wait4(pid, 0)
    unit = 1 if sys.platform == "darwin" else 1024
    os.write(descriptor, str(usage.ru_maxrss * unit).encode())
