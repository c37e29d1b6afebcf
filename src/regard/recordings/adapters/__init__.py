"""How a recording is made: of a model, of any PyTorch module, of arrays."""
