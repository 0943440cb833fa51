"""Above the kernel model: its operator tables, its fit, its errors, its pictures."""
