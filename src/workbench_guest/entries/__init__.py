"""What a forked warm interpreter can be told to become: one module each, with `main(payload) -> exit code`."""
