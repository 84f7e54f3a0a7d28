"""Build a cache of images in a process of torchrun, and note every file that is decoded.

    torchrun --nproc-per-node 2 decoding.py FOLDER LOG DIES

The first process ends without a word after DIES files, unless that is 0.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch

from unswayed import processes
from unswayed.data import cache


def main() -> None:
    """Open the images of a folder, and check the pixels of all."""
    folder, log, dies = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    processes.start()
    real, rank, decoded = cache.decode, processes.rank(), []
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def noted(path, *rest):
        decoded.append(path)
        os.write(handle, f"{rank} {path.name}\n".encode())
        if rank == 0 and len(decoded) == dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(path, *rest)

    cache.decode = noted
    paths = sorted(folder.iterdir())
    processes.wait()
    images = cache.open_images(paths, 3, (8, 8), cache="disk").images
    rows = torch.arange(len(paths))
    colors = torch.stack([rows % 251, rows // 251, torch.full_like(rows, 7)], dim=1)
    for part in rows.split(1024):
        assert torch.equal(images[part], colors[part].byte()[:, :, None, None].expand(-1, 3, 8, 8))
    processes.wait()
    processes.leave(0)


main()
