"""The commands that travel through the queues. Old samples must parse for ever (events/).

A reader ignores fields it does not know, so that a newer producer can add some; another ``v`` or
``type`` is refused, retried and ends in the dead-letter queue, where nothing is lost.
"""

from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

ReservationId = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{1,32}-[1-9][0-9]{0,3}$")]


class _Command(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    v: Annotated[int, Field(ge=1, le=1)] = 1
    correlation_id: Annotated[str, Field(max_length=128)] = ""

    @classmethod
    def read(cls, body: str) -> Self:
        """The command in a message's body, which must say its version and type itself.

        Raises ValueError.
        """
        command = cls.model_validate_json(body)
        if not {"v", "type"} <= command.model_fields_set:
            raise ValueError("the message does not say which version and type it is")
        return command


class _StockCommand(_Command):
    reservation_id: ReservationId
    order_id: Annotated[int, Field(ge=1)]


class ReserveStock(_StockCommand):
    """Hold the stock of a waiting order; the lines are the order's."""

    type: Literal["ReserveStock"] = "ReserveStock"


class ConfirmStock(_StockCommand):
    """The order is paid: turn its hold into a sale."""

    type: Literal["ConfirmStock"] = "ConfirmStock"


class ReleaseStock(_StockCommand):
    """The order is closed: give its hold back, or leave a tombstone where none was taken yet."""

    type: Literal["ReleaseStock"] = "ReleaseStock"


class RefundPayment(_Command):
    """Try a refund once; its row says how much, of what, and whether it is time."""

    type: Literal["RefundPayment"] = "RefundPayment"
    refund_id: Annotated[int, Field(ge=1)]


StockCommand = ReserveStock | ConfirmStock | ReleaseStock
Command = StockCommand | RefundPayment

# One queue a command. Order holds only inside a queue, and the consumers do not need more.
QUEUE_OF: Final[dict[type[BaseModel], str]] = {
    ReserveStock: "reserve",
    ConfirmStock: "confirm",
    ReleaseStock: "release",
    RefundPayment: "refund",
}
