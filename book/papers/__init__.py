"""The five sources as the book shows them: printed numbers, claims, errata, tables, figures and boxes."""
