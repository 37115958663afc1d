"""A script: forks writers to the database at a URL, and kills each of them after a random time.

Arguments: the URL, the file for the notes of the lives, how many are to be killed, a seed, and the longest time in
seconds that one has; it begins with its first acknowledged write, or, of every fifth writer, with its process. What is
imported is imported once.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
import traceback

from adk_memory import open_memory
from faults.workload import WITH_VECTORS, CheapEmbedder, Life

LIVES = 3


async def write(url: str, number: int, seed: str, notes: int, beginning: int) -> None:
    embedder = CheapEmbedder() if number % 2 else None
    kind = WITH_VECTORS if embedder else "words"

    def note(line: str) -> None:
        os.write(notes, f"{line}\n".encode())  # what is written so is there, whoever is killed
        if '"ends"' in line:
            os.write(beginning, b"!")

    async def live(name: str) -> None:
        life = Life(name, random.Random(f"{seed} {name}"), note)
        while True:
            await life.step(service)

    async with open_memory(url, embedder=embedder) as service:
        await asyncio.gather(*(live(f"{kind} {number} {letter}") for letter in "abc"[:LIVES]))


def main(url: str, file: str, kills: int, seed: str, longest: float) -> None:
    chance = random.Random(seed)
    notes = os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    for number in range(kills):
        begun, beginning = os.pipe()
        writer = os.fork()
        if not writer:
            try:
                asyncio.run(write(url, number, seed, notes, beginning))
            except BaseException:  # noqa: BLE001 - the forker's own code must not go on here
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(beginning)
        if number % 5:
            os.read(begun, 1)
        time.sleep(chance.uniform(0, longest))
        os.kill(writer, signal.SIGKILL)
        _, status = os.waitpid(writer, 0)
        os.close(begun)
        assert os.WIFSIGNALED(status), f"writer {number} failed by itself"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], float(sys.argv[5]))
