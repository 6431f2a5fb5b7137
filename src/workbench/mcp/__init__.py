"""The MCP door: tools for agents, over whatever transport. It only translates; the core does."""
