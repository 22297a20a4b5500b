"""`make dashboard`: the figures of the CloudWatch dashboard as a page in the browser.

Of a deployed stack, the page reads CloudWatch. Of the stack of `make up`, it reads what the
functions logged, because the emulator keeps no metrics of services.
"""
