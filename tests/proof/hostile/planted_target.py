"""A reader with a fault behind three bytes, for the test that the fuzzer finds it."""

from typing import Final

from tests.proof.hostile.targets import Target


def _read(sent: bytes) -> None:
    if len(sent) > 2 and sent[0] == 0x50 and sent[1] == 0x4B and sent[2] == 0x07:
        raise ValueError("let out")


TARGETS: Final = {"planted": Target(_read, [b"abc"])}
