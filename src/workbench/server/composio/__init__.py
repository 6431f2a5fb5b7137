"""The sessions API: what SDKs written for Composio's hosted service ask, answered here."""
