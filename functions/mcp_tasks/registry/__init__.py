"""What a server offers, as authors declare it: found in a folder, shown to clients.

`tool`, `resource` and `prompt` are the declarations; `context` and `asking` what a function may do
while it runs; `schema`, `results` and `content` what goes in and comes out; `catalogue` finds them.
"""
