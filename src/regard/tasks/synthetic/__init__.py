"""Tasks that draw their examples from a seeded generator."""
