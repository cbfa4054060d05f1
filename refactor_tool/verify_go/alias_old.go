//go:build !go1.22

package main

import "go/types"

// Before Go 1.22 the checker resolves aliases by itself.
func unalias(t types.Type) types.Type { return t }
