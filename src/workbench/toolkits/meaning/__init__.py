"""What sentences mean, as vectors: a small model by numpy alone, and the vectors of shipped tools."""
