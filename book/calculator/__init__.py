"""The calculator: one page that asks the kernel model.

``instrument`` makes the page; ``fields`` its form, of the declared fields of a question; ``questions`` prints the
library's equations as JavaScript, ``tables`` looks up their numbers.
"""
