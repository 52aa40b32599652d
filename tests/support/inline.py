"""A pool without threads: what is submitted is done at once."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Self


class InlinePool:
    """Stands for a ThreadPoolExecutor. A process that dies in a talk dies as a whole."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit[T](self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(work(*arguments))
        except Exception as fault:
            future.set_exception(fault)
        return future
