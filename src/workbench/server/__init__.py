"""The doors that are reached over the network. Each translates, none decides."""
