"""The OAuth 2.1 resource server: whether an access token is valid, and for what (`-c auth=oauth`).

`request_authorizer` decides about a request. `bearer` reads its token, and `tokens` verifies it
with the keys of `jwks`. These are the issuer's: `discovery` finds them, by means of `http_json`.
"""
