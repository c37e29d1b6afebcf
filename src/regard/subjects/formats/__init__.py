"""Models in other programs' files, read without running anything in them."""
