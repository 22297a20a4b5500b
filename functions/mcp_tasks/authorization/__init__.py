"""The OAuth 2.1 resource server: whether an access token is good, and for what (`-c auth=oauth`).

`authorizer` decides about a request. `bearer` finds its token, `tokens` checks it, with the keys
that `keys` keeps; these come from the issuer, which `discovery` asks over `fetching`.
"""
