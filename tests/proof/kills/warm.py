"""What a function's process has when it is forked: everything imported, and boto3's description of
SQS read. Only the process that they are forked from imports this."""

import boto3

from functions import alipay_notify, operate_payments, sweep_expired  # noqa: F401

boto3.client("sqs", region_name="eu-west-1", aws_access_key_id="-", aws_secret_access_key="-")
