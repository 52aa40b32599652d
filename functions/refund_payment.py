"""refund.fifo: one try of a refund. The refund's row drives what follows, never a redelivery."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from lockstep.alipay import gateway
from lockstep.messaging.consumer import BatchAnswer, consume
from lockstep.messaging.contracts import RefundPayment
from lockstep.observability import count, count_fault, logger, observed
from lockstep.payments.refund import try_refund


def handle(command: RefundPayment) -> None:
    try:
        tried = try_refund(command.refund_id, gateway.connect)
    except Exception as fault:  # the sweep stages the next try when the row is due
        count_fault("RefundTryFailed", fault)
        logger.exception("refund not tried", refund_id=command.refund_id)
        return
    count("Refund", tried)
    logger.info("refund tried", refund_id=command.refund_id, tried=tried)


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> BatchAnswer:
    return consume(event, context, RefundPayment, handle)
