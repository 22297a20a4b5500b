"""What a server offers, as authors declare it: found in a folder, shown to clients.

`tool` is what a declaration is, `schema` its JSON Schemas, `results` what a return value becomes,
`catalogue` the folder of them.
"""
