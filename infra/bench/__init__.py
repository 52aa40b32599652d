"""Ours beside the ways that others have, in one run on one MySQL: `make bench`.

sections   what is measured beside what
rows       a way at so many clients: its runs, interleaved with the others'
ratios     ours over the seeds', and what is asked of it
shown      the tables
picture    the picture for the README

crowd      clients over two processes; latencies, round trips
wire       what a round trip takes
way        what every way has in common

ours, our_notice, our_rows   the handlers that are deployed, and the rows they find
seeds, seed_orders, seed_tables   the transactions that this backend began from
naive, mall, oscar, oscar_clients   check-then-update, macrozheng/mall, django-oscar
limits     what the engine itself can do
cold       cold imports

growth   the paths beside a long past: `make bench-growth`
growth_pairs, growth_paths, growth_events   runs in pairs; what is run, and what it is handed
growth_rows, growth_fill, growth_present   the past that the server makes, and what a run finds

life   through a deployed stack: `make bench-life`
flash_sale, life_stages, asking   many members and one SKU; whole lives; as an app asks
"""
