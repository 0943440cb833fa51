"""What the post says and can be checked: its short answers, and the detailed explanation behind them."""
