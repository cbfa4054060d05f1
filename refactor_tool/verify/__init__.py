"""The pure part of `verify`: what is asked of the Go toolchain, and what its answers mean for each step."""
