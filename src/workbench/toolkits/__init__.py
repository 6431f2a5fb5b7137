"""Sources of tools: descriptions of services turned into tools, and the calls that carry them out."""
