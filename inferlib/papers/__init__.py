"""One room per source: its equations, what it printed, and what of that reproduces."""
