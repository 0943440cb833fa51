"""The kernel model's operator tables, fit, errors and figures."""
