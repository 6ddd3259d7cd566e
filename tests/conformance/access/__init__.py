"""Access control: which requests a broker refuses to which user, from official clients and as raw frames."""
