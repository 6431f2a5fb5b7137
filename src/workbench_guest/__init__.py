"""What runs inside a sandbox, and what builds the walls around it. Imports nothing of the server's."""
