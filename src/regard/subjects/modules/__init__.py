"""Any PyTorch module: attentions and cells found by type, or named places."""
