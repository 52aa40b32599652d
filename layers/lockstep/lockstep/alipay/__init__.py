"""Alipay, the payment channel: what it tells us, and what we ask of it.

`notice` turns the bytes of an asynchronous notice into a verified value and touches nothing else.
`gateway` asks, and turns each answer, or its absence, into an outcome.
"""
