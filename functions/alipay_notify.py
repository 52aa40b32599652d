"""POST /alipay/notify: 200 text/plain, exactly `success` or `failure`, whatever comes in."""

from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep import settings
from lockstep.alipay.form import body_bytes
from lockstep.alipay.keys import PublicKey, load_public_key
from lockstep.alipay.model import Notice, NoticeRefused
from lockstep.alipay.notice import verify_and_parse
from lockstep.observability import count, count_fault, logger, observed
from lockstep.payments.accept import accept
from lockstep.payments.model import RESULTS_TO_RESEND


@observed
def handler(event: dict[str, Any], _: LambdaContext) -> dict[str, Any]:
    return {
        "statusCode": 200,
        "headers": {"content-type": "text/plain; charset=utf-8"},
        "isBase64Encoded": False,
        "body": "success" if _is_settled(event) else "failure",
    }


def _is_settled(event: dict[str, Any]) -> bool:
    """False makes Alipay send the notice again."""
    try:
        notice = _read(event)
        result = accept(notice)
    except NoticeRefused as refused:
        count("NoticeRefused", refused.code)
        logger.warning("notice refused", code=refused.code, detail=refused.detail)
        return False
    except Exception as fault:  # an error page instead of the word would say no more to Alipay
        count_fault("NoticeFailed", fault)
        logger.exception("notice not stored", fault=type(fault).__name__)
        return False
    count("Notice", result)
    logger.info("notice accepted", result=result, trade_no=notice.trade_no)
    return result not in RESULTS_TO_RESEND


def _read(event: dict[str, Any]) -> Notice:
    ours = settings.alipay()
    body = body_bytes(event.get("body"), bool(event.get("isBase64Encoded")))
    return verify_and_parse(body, _alipay_keys(), ours.app_id, ours.seller_ids)


@cache
def _alipay_keys() -> tuple[PublicKey, ...]:
    return tuple(map(load_public_key, settings.alipay().public_keys))
