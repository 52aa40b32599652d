"""The main job as short stories: each makes its own SKU, does one thing, checks how it ended."""

from collections.abc import Callable
from typing import Final

from infra.local.shop import Shop
from infra.local.stories import giving_back, ordering, paying
from infra.local.stories.telling import MEI as MEI
from infra.local.stories.telling import WentWrong as WentWrong
from infra.local.stories.telling import ordered as ordered
from infra.local.stories.telling import page_of as page_of
from infra.local.stories.telling import sold as sold

ALL: Final[tuple[Callable[[Shop], None], ...]] = (
    paying.pay_an_order,
    ordering.ask_again,
    ordering.ask_for_something_else,
    ordering.want_the_last_one,
    ordering.wait_in_line,
    ordering.cancel,
    paying.cancel_with_an_open_page,
    paying.let_it_expire,
    paying.lose_the_notice,
    giving_back.pay_too_late,
    giving_back.pay_twice,
    giving_back.pay_a_wrong_amount,
    giving_back.send_something_back,
    giving_back.lose_the_answer,
    giving_back.pay_for_no_order,
)
