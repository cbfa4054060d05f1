package main

import (
	"regexp"
	"strings"
)

var (
	placeInMessage = regexp.MustCompile(`(\.go):\d+(:\d+)?`)
	lineInMessage  = regexp.MustCompile(`\bline \d+`)
	// The type checker writes "x/y/docker".T for docker.T as soon as it knows of another package of that name.
	packageInMessage = regexp.MustCompile(`"(?:[^"\s]*/)?([^"\s/]+)"\.`)
)

// problemKey identifies an error whatever line it stands on.
type problemKey struct{ pkg, path, decl, code, message string }

func keyOf(p *Problem) problemKey {
	message := placeInMessage.ReplaceAllString(p.Message, "$1")
	message = lineInMessage.ReplaceAllString(message, "line")
	message = packageInMessage.ReplaceAllString(message, "$1.")
	return problemKey{p.Package, p.Path, p.Decl, p.Code, message}
}

// comparePair subtracts the errors of one run from those of the next. An error met n times before is new from
// the (n+1)th on; which of them is told by the source lines.
func comparePair(before, after *Run) Pair {
	pair := Pair{
		Before: before.Tree, After: after.Tree, Config: after.Config,
		New:              subtract(after.Errors, before.Errors),
		Gone:             subtract(before.Errors, after.Errors),
		NewlyNotVerified: []NotVerified{},
	}
	unverified := map[string]bool{}
	for _, old := range before.NotVerified {
		unverified[old.Package] = true
	}
	for _, now := range after.NotVerified {
		if !unverified[now.Package] {
			pair.NewlyNotVerified = append(pair.NewlyNotVerified, now)
		}
	}
	return pair
}

// subtract returns the problems of list beyond those of known, in order.
func subtract(list, known []Problem) []Problem {
	type exact struct {
		problemKey
		text string
	}
	byKey, byLine := map[problemKey]int{}, map[exact]int{}
	for i := range known {
		key := keyOf(&known[i])
		byKey[key]++
		byLine[exact{key, strings.TrimSpace(known[i].text)}]++
	}
	matched := make([]bool, len(list))
	for i := range list { // same line of source first, so that what is left over is what was added
		key := keyOf(&list[i])
		line := exact{key, strings.TrimSpace(list[i].text)}
		if byLine[line] > 0 {
			byLine[line]--
			byKey[key]--
			matched[i] = true
		}
	}
	rest := []Problem{}
	for i := range list {
		if matched[i] {
			continue
		}
		if key := keyOf(&list[i]); byKey[key] > 0 {
			byKey[key]--
			continue
		}
		rest = append(rest, list[i])
	}
	return rest
}
