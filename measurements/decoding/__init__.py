"""What measurements/decode.py is made of: only Python and PyTorch are needed, nothing of inferlib."""
