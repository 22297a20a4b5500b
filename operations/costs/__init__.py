"""`make cost`: what a stack costs a month under a given load, by service and for each task.

    prices.toml    what AWS asks, with the date and the page
    prices.py      reads it
    load.py        what is asked of the stack
    calls.py       what each action of a task calls, as tests count it
    usage.py       what is billed for a load: requests, GB-seconds, transitions, units, bytes
    bill.py        quantities times prices

Everything is arithmetic. Two kinds of numbers go into it: calls, which tests count, and times and
sizes, which are assumptions and can be given (`load.py`).
"""
