"""The cashier's page in a real browser, without a window: what a person sees, clicks and types."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from infra.local.alipay_gateway.shapes import Request
from tests.support.local_alipay import local_alipay

SUBJECT = '钢笔 <img src=x onerror="document.title=1"> pens'
NUMBERS = count(1)
DESKTOP, PHONE = (1280, 900), (390, 844)


@pytest.fixture(scope="module")
def alipay():
    with local_alipay() as alipay:
        yield alipay


@pytest.fixture(params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def page(driver, alipay, request):
    return Page(driver, alipay, request.param)


@pytest.fixture
def desktop(driver, alipay):
    return Page(driver, alipay, DESKTOP)


class Page:
    """An order of 9.90 at the cashier, on a screen of a size."""

    def __init__(self, driver, alipay, size):
        self.driver, self.alipay, self.number = driver, alipay, f"B{next(NUMBERS)}"
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1}
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", metrics | {"mobile": width < 600}
        )

    def open(self, lang=None, **changes):
        """Follow a pay link of the product's own client."""
        asked = {
            "out_trade_no": self.number,
            "amount": Decimal("9.90"),
            "subject": "Two pens",
            "expires_at": datetime.now(UTC) + timedelta(minutes=30),
            "notify_url": "http://127.0.0.1:1/alipay/notify",
            "return_url": None,
        }
        self.driver.get(self.alipay.gateway().page_url("page", **(asked | changes)))
        if lang is not None:
            self.driver.get(f"{self.alipay.service.cashier_url}/{self.number}?lang={lang}")

    def text(self):
        return self.driver.find_element(By.TAG_NAME, "main").text

    def button(self, action):
        return self.driver.find_element(By.CSS_SELECTOR, f"#{action} button")

    def wait_for(self, text):
        leaving = [StaleElementReferenceException]
        wait = WebDriverWait(self.driver, 10, ignored_exceptions=leaving)
        wait.until(lambda _: text in self.text())

    def tab_to(self, action):
        """Press Tab until the button has the focus."""
        for _ in range(20):
            ActionChains(self.driver).send_keys(Keys.TAB).perform()
            if self.driver.switch_to.active_element == self.button(action):
                return
        raise AssertionError(f"no way to {action} by keyboard")

    def paid(self):
        trades = self.alipay.service.books.trades(self.number)
        return [str(trade.amount) for trade in trades if trade.paid_at is not None]


def test_a_person_pays_with_the_mouse(page):
    page.open()
    for shown in ("Local Alipay", "¥9.90", "Two pens", page.number, "waits for payment"):
        assert shown in page.text()
    assert page.paid() == []
    page.button("pay").click()
    page.wait_for("paid")
    assert page.paid() == ["9.90"]
    assert page.driver.find_elements(By.ID, "pay") == []
    WebDriverWait(page.driver, 10).until(
        lambda _: page.number in [words["out_trade_no"] for words in page.alipay.words()]
    )


def test_a_person_pays_with_the_keyboard(page):
    page.open()
    page.tab_to("pay")
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    page.wait_for("paid")
    assert page.paid() == ["9.90"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_fits_the_screen(page, lang):
    page.open(lang, subject="x" * 256)
    wide, seen = page.driver.execute_script(
        "return [document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert wide <= seen
    for button in page.driver.find_elements(By.TAG_NAME, "button"):
        assert button.size["height"] >= 44, "a finger has to hit it"
        assert button.rect["x"] + button.size["width"] <= seen


def test_it_speaks_chinese_and_stays_so(desktop):
    desktop.open("en")
    desktop.driver.find_element(By.LINK_TEXT, "中文").click()
    desktop.wait_for("等待付款")
    assert desktop.button("pay").text == "支付 ¥9.90"
    desktop.button("pay").click()
    desktop.wait_for("已支付")


def test_what_others_chose_does_not_run(desktop):
    # Not by a pay link: Alipay takes no "=" in a subject.
    desktop.alipay.service.books.ask(
        Request(
            out_trade_no=desktop.number,
            amount=Decimal("9.90"),
            subject=SUBJECT,
            product="alipay.trade.page.pay",
            expires_at=datetime.now(UTC) + timedelta(minutes=30),
        )
    )
    desktop.driver.get(f"{desktop.alipay.service.cashier_url}/{desktop.number}?lang=en")
    assert SUBJECT in desktop.text()
    assert desktop.driver.title == "Local Alipay"
    assert desktop.driver.find_elements(By.TAG_NAME, "img") == []


def test_it_asks_for_nothing_from_elsewhere(desktop):
    desktop.open()
    asked = "return performance.getEntriesByType('resource').map(one => one.name)"
    assert desktop.driver.execute_script(asked) == []
    errors = [entry for entry in desktop.driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert errors == []


def test_a_buyer_is_sent_back_to_the_shop(desktop):
    desktop.open(return_url=desktop.alipay.service.cashier_url)
    desktop.button("pay").click()
    WebDriverWait(desktop.driver, 10).until(lambda driver: "trade_no=" in driver.current_url)
    assert desktop.driver.current_url.startswith(f"{desktop.alipay.service.cashier_url}?")


def test_time_runs_out_before_the_buyers_eyes(desktop):
    # Alipay knows whole seconds only.
    desktop.open(expires_at=datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3))
    WebDriverWait(desktop.driver, 10).until(
        lambda driver: driver.find_element(By.CSS_SELECTOR, "[data-seconds]").text == "over"
    )
    WebDriverWait(desktop.driver, 10).until(
        lambda _: desktop.alipay.service.books.find(out_trade_no=desktop.number).closed_at
    )
    desktop.button("pay").click()
    desktop.wait_for("Not paid: ACQ.TRADE_HAS_CLOSE")
    assert desktop.paid() == []
    desktop.button("late").click()
    desktop.wait_for("paid")
    assert desktop.paid() == ["9.90"]


def test_a_developer_pays_twice(desktop):
    desktop.open()
    desktop.button("twice").click()
    desktop.wait_for("Payments")
    assert desktop.paid() == ["9.90", "9.90"]


def test_a_developer_pays_another_sum(page):
    page.open()
    field = page.driver.find_element(By.ID, "sum")
    field.clear()
    field.send_keys("9.99", Keys.ENTER)
    page.wait_for("Payments")
    assert page.paid() == ["9.99"]
