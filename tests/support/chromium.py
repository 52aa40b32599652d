"""A real browser without a window, steered by its driver."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

from infra.local.browser import Browser

ARGUMENTS = (
    "--headless=new",
    # Chromium's own needs rights that a container or root does not have.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--lang=en",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


@contextmanager
def started(browser: Browser, profile: Path) -> Iterator[Chrome]:
    """It reaches this machine only, and keeps nothing but in ``profile``."""
    options = ChromeOptions()
    options.binary_location = browser.program
    for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    service = ChromeService(browser.driver, env={**os.environ, **browser.environment})
    driver = Chrome(options, service)
    try:
        yield driver
    finally:
        driver.quit()
