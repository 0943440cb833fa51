"""All models asked the same question and compared with measurements."""
