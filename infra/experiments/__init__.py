"""What the rules of this backend rest on, measured on the machine at hand: `make experiments`.

    twice      paid and closed at once: looking first, against a guarded update
    oversell   more buyers than stock: looking first, against the condition in the update
    keys       what a primary key costs: BIGINT, ordered and random UUIDs
    hot_row    one row that everybody updates, against a thousand

    threads    who acts in them: threads that meet, each with a session

Each sets a published figure beside what it measured here. Where a rule of ours is the question,
"ours" is the product's own operation on its own tables; the other ways are the shortest SQL.
"""
