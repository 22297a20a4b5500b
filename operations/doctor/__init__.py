"""`make doctor url=...`: discovery of the issuer, walked through as clients do.

`web.py` fetches. `clients.py` says in which order each client looks, and what it takes.
`endpoint.py` asks the endpoint without a token, `walk.py` goes on from there for one client, and
`report.py` prints where it stops and what to do.
"""
