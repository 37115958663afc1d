"""A chat function with a memory. This one only shows what it was given; in its place: a call of your model."""

from __future__ import annotations

import asyncio
import tempfile

from adk_memory import MemoryServiceAdapter, open_memory, remembering


async def chat(message: str, context: str) -> str:
    """Answer a message; ``context`` is what is remembered of it, for the prompt."""
    return f"What I know of it:\n{context}" if context else "Noted."


async def main() -> None:
    """Say something on Monday, and ask for it on Tuesday, in another process as it were."""
    with tempfile.TemporaryDirectory() as folder:
        for message in ("My favourite tea is jasmine.", "Which tea do I like?"):
            async with open_memory(f"sqlite:///{folder}/memory.db") as memory:
                await memory.migrate()
                answer = remembering(MemoryServiceAdapter(memory, "tea-shop", "ana"), chat)
                print(f"{message}\n-> {await answer(message)}")


if __name__ == "__main__":
    asyncio.run(main())
