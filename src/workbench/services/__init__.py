"""Services of others that the server asks on behalf of code in a sandbox: language models and web searches."""
