"""Commands, thin: parse, call, print."""
