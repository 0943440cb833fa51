"""The calculator: one page that asks the kernel model in the browser.

``page`` makes the page and ``fields`` its form, from the declared fields of a question; ``javascript`` generates
JavaScript from the library's equations, and ``tables`` has their numbers.
"""
