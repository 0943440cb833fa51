"""What the text says and can be checked, by subject."""
