"""What the outside must provide, written for the next implementer."""
