"""An independent model of the product: what each call must answer, and what is so afterwards.

Plain records and dictionaries, written from the promises and not from the product's code, none of
which it imports. Money is counted in fen, time in seconds since the world began.

    books     what there is, and how a message is staged
    stock     SKUs and holds
    orders    orders, their keys and their pages
    channel   Alipay's own books, and what it answers
    money     payments and notices
    refunds   what goes back
    minutes   what the relay and the sweep do

Where the product is free to choose, the auditor is told what it chose, and says whether it might:
when a question to the channel is asked again, and how refunds of ours and of the merchant's console
are told apart while both are under way.
"""
