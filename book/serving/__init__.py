"""Above the sixth model: its operator tables, its fit, its errors, its pictures."""
