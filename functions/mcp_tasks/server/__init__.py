"""The server: from an HTTP request to its answer.

`endpoint` takes a request in and finds its revision; `revisions` holds a module for each, which
knows its names and shapes. `tools`, `resources`, `prompts`, `completion`, `lists` and
`tasks_extension` hold the methods, each beside the page of the specification that it is named
after; `rounds` asks the client in the midst of one.
"""
