"""Each mqadmin command and each AdminClient method, official and ours, side by side."""
