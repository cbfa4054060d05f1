"""What the larger commands do between their arguments and their exit code; `cli` only reads the arguments."""
