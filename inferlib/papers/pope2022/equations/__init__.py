"""The equations of the source, each once, by subject."""
