"""The calculator: one page that asks the sixth model, and the five sources of the same step.

``instrument`` makes the page; ``fields`` its form, of the declared fields of a question; ``questions`` prints the
library's equations as JavaScript, ``tables`` looks up their numbers, ``sources`` asks the five.
"""
