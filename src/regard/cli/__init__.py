"""The command line: a file per command; what begins with `_` helps them."""
