"""Everybody asked the same question, held against measurements; the indexes at the back of the book."""
