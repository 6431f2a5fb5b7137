"""Files by signed links: the one address of the server where a link stands for a key."""
