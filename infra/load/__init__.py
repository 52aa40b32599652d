"""What a flash sale and a busy day would ask of the deployment, and what breaks first:
`make model`.

    options      what was asked for, and by which name it is refused
    deployment   what template.yaml, database.yaml and the code say
    figures      what was measured: .local/bench.json, or figures.json with its source
    assumptions  what was not measured, each with its reason (assumptions.json)
    quotas       what an account and a region allow, and what database classes are (quotas.json)
    plan         all of that as the seconds and rates that the simulation runs on

    arrivals     when buyers come
    clock        events in the order of time
    stations     what they queue for: a rate, copies of a function, the database
    deciders     the doorbells of reserve.fifo and the turns at hot SKUs
    sale         a buyer's way through all of them, simulated
    waits        how long it took them: p50, p99, max

    limits       where each resource ends, by formula, and what to change then:
                 sale_limits, order_limits
    cost         what a million orders cost (prices.json)
    report       all of it in words

A formula is used where one holds; waiting times come from the simulation.
"""
