"""What the five sources print: each its numbers, claims, errata, tables, figures and boxes."""
