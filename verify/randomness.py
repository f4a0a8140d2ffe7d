"""Random numbers that depend on the run's seed, the claim and the replicate, and on nothing else.

`SeedSequence([run seed, SHA-256 words of the claim id, replicate])`: the number of workers, their order and the other
claims of a run leave every stream as it is.
"""

from __future__ import annotations

import hashlib

import numpy as np

__all__ = ["generator", "seed_words"]


def seed_words(text: str) -> list[int]:
    """The SHA-256 of a text as eight 32-bit words.

    >>> [hex(word) for word in seed_words("alignment.variance")][:2]
    ['0xd4dc5673', '0x298b4e0c']
    """
    digest = hashlib.sha256(text.encode()).digest()
    return [int.from_bytes(digest[i : i + 4], "big") for i in range(0, 32, 4)]


def generator(seed: int, claim: str, replicate: int = 0) -> np.random.Generator:
    """The generator of one replicate of one claim in the run with that seed."""
    return np.random.default_rng(np.random.SeedSequence([seed, *seed_words(claim), replicate]))
