"""Which browser the cashier's test is steered in, and why there may be none."""

import pytest

from infra.local import browser, debian_packages


@pytest.fixture(autouse=True)
def nothing_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(browser, "DISTRIBUTION", tmp_path / "browser-dist")
    monkeypatch.setattr(browser, "LOCAL", tmp_path)


def on_the_path(monkeypatch, *names):
    found = {name: f"/usr/bin/{name}" for name in names}
    monkeypatch.setattr("shutil.which", found.get)


def test_what_is_on_the_path_comes_first(monkeypatch):
    on_the_path(monkeypatch, "google-chrome", "chromedriver")
    assert browser.ensure() == browser.Browser("/usr/bin/google-chrome", "/usr/bin/chromedriver")


@pytest.mark.parametrize("only", [["chromium"], ["chromedriver"], []])
def test_without_either_there_is_none_and_the_reason_is_told(monkeypatch, only):
    on_the_path(monkeypatch, *only)
    why = browser.ensure()
    assert isinstance(why, str)
    assert "on the PATH" in why
    assert "no apt-get" in why


def test_packages_are_those_of_this_machines_release(monkeypatch):
    asked = []
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(debian_packages, "why_not", lambda: None)
    monkeypatch.setattr(debian_packages, "fetch", lambda *a, **more: asked.append((*a, more)))
    release = {"ID": "debian", "VERSION_CODENAME": "trixie"}
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: release)
    found = browser.ensure()
    assert isinstance(found, browser.Browser)
    [(tree, packages, suite, _, more)] = asked
    assert (packages, suite) == (["chromium", "chromium-driver"], "trixie")
    assert more == {"leave_out": "libc6"}, "it runs on the system's own C library"
    assert found.program == str(tree / "usr/lib/chromium/chromium")


def test_a_debian_without_a_release_has_none(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(debian_packages, "why_not", lambda: None)
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: {"ID": "debian"})
    assert "no release" in str(browser.ensure())
