"""What models are made of: cells, attention, embeddings, positions, readouts."""
