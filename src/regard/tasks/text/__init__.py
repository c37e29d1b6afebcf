"""Tasks that read text which the user names."""
