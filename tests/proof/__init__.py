"""The proof that ships: `make proof` tries what can go wrong, in order and from seeds, on a real
MySQL, and prints what held.

    section    what a section, its parts, a case, a tally and an extent are
    world      the deployed system inside one process: functions, queues, Alipay, and time
    sections   the sections there are
    run        works them off, on as many processes as there are cores
    report     the table, and for a failure the command that replays it
"""
