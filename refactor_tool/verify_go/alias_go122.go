//go:build go1.22

package main

import "go/types"

func unalias(t types.Type) types.Type { return types.Unalias(t) }
