"""`make verify`: drive a deployed server as clients do, and compare its account with the template.

Everything that only AWS can tell is tried here. Against the emulator, those checks are marked and
not run.
"""
