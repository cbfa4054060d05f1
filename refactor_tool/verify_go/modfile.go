package main

import (
	"strconv"
	"strings"
)

// modfile is what of a go.mod bears on types. Directives that name tools, toolchains or folders are not followed.
type modfile struct {
	present  bool
	language string          // "go1.23", or "" for none
	required map[string]bool // module paths
	replaced map[string]bool
}

// parseModfile reads a go.mod; what it does not understand it passes over.
func parseModfile(text string) modfile {
	m := modfile{present: true, required: map[string]bool{}, replaced: map[string]bool{}}
	block := ""
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case block != "" && words[0] == ")":
			block = ""
			continue
		case len(words) == 2 && words[1] == "(":
			block = words[0]
			continue
		case block != "":
			words = append([]string{block}, words...)
		}
		if len(words) < 2 {
			continue
		}
		module := words[1]
		if unquoted, err := strconv.Unquote(module); err == nil {
			module = unquoted
		}
		switch words[0] {
		case "go":
			m.language = languageVersion(module)
		case "require":
			m.required[module] = true
		case "replace":
			m.replaced[module] = true
		}
	}
	return m
}

// languageVersion turns "1.23.4" into "go1.23", and anything else into "".
func languageVersion(version string) string {
	major, rest, ok := strings.Cut(version, ".")
	minor := strings.TrimRight(rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))], " ")
	if _, err := strconv.Atoi(minor); !ok || major != "1" || err != nil {
		return ""
	}
	return "go1." + minor
}

// provides reports whether a module that go.mod requires or replaces can hold the package.
func (m modfile) provides(path string) bool { return m.providesWithin("", path) }

// providesWithin is provides for modules whose path is longer than that of the module outer.
func (m modfile) providesWithin(outer, path string) bool {
	for len(path) > len(outer) {
		if m.required[path] || m.replaced[path] {
			return true
		}
		cut := strings.LastIndexByte(path, '/')
		if cut < 0 {
			return false
		}
		path = path[:cut]
	}
	return false
}
