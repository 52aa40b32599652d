"""A local Alipay, for development and tests: the gateway, its cashier, its notices and its bills.

Written from what Alipay promises and does, and apart from the product's own client, so that each
checks the other. Nothing here is deployed.

    shapes      what is in the books, and what a refusal is
    books       the rules: pay, close, refund, once each
    journal     the books on disk
    envelope    the request's signature, the answer's
    calls       one function a method of the gateway
    wording     what a notice says
    post        when a notice is sent, and sent again
    faults      what goes wrong on purpose
    bill        a day's trades as Alipay lists them
    cashier     what the buyer sees
    control     what a test can ask for
    service     all of it together; server gives it HTTP, process keeps it running for a home
"""
