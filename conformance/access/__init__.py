"""Access control: which requests are refused to whom, with the official clients and as raw frames."""
