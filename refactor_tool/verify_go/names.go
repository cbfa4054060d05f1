package main

import (
	"go/ast"
	"path"
	"regexp"
	"sort"
	"strings"
)

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*`)

// nameCandidates returns likely package names for an import path, likeliest first; never empty.
func nameCandidates(importPath string) []string {
	var names []string
	add := func(name string) {
		if name = identifier.FindString(name); name != "" {
			names = append(names, name)
		}
	}
	base := path.Base(importPath)
	last := base
	if majorVersion.MatchString(base) && path.Dir(importPath) != "." {
		base = path.Base(path.Dir(importPath))
	}
	base, _, _ = strings.Cut(base, ".v") // gopkg.in/yaml.v2
	add(strings.NewReplacer("-", "", ".", "").Replace(strings.TrimPrefix(base, "go-")))
	add(strings.NewReplacer("-", "_", ".", "_").Replace(base))
	for _, suffix := range []string{"-go", ".go", "-golang"} {
		add(strings.NewReplacer("-", "", ".", "").Replace(strings.TrimSuffix(base, suffix)))
	}
	add(last) // k8s.io/api/core/v1
	add(base)
	if cut := strings.LastIndexAny(base, "-."); cut >= 0 {
		add(base[cut+1:])
	}
	return append(names, "outside")
}

// stdName returns the package name of a standard import path.
func stdName(importPath string) string {
	base := path.Base(importPath)
	if majorVersion.MatchString(base) && strings.Contains(importPath, "/") {
		return path.Base(path.Dir(importPath))
	}
	return base
}

// nameOutside gives every unnamed import of an outside package the name its package must have, so that the
// checker, which never sees the package, resolves what follows. The first tree teaches: where no candidate is
// used, a name that all files with this import use and nothing else explains is the name. Later trees learn
// nothing new: a misspelt name must not be taken for that of a package.
func nameOutside(views []*view, sources map[sourceKey]*source) {
	names := map[string]string{}
	first := views[0].tree
	var paths []string
	importers := map[string][]*source{}
	for _, v := range views {
		if v.tree != first {
			break
		}
		for _, s := range v.sources {
			for _, ref := range s.imports {
				if v.nameless(ref) {
					if importers[ref.path] == nil {
						paths = append(paths, ref.path)
					}
					importers[ref.path] = append(importers[ref.path], s)
				}
			}
		}
	}
	sort.Strings(paths)
	for _, p := range paths {
		if name := candidateInUse(views[0], p, importers[p]); name != "" {
			names[p] = name
		}
	}
	for _, p := range paths {
		if names[p] == "" {
			names[p] = leftoverName(views[0], importers[p], names)
		}
	}
	for _, v := range views {
		for _, s := range v.sources {
			for _, ref := range s.imports {
				if !v.nameless(ref) {
					continue
				}
				if ref.name = names[ref.path]; ref.name == "" {
					ref.name = candidateInUse(v, ref.path, []*source{s})
				}
				if ref.name == "" {
					ref.name = nameCandidates(ref.path)[0]
				}
				ref.spec.Name = &ast.Ident{NamePos: ref.spec.Path.Pos(), Name: ref.name}
			}
		}
	}
}

// nameless reports whether only the package, which nobody here can see, says under which name it is imported.
func (v *view) nameless(ref *importRef) bool {
	kind := v.classify(ref.path)
	return ref.name == "" && (kind == outsideImport || kind == missingImport)
}

// candidateInUse returns the candidate that most of the files use and do not owe to another import, or "".
func candidateInUse(v *view, importPath string, files []*source) string {
	counts := map[string]int{}
	names := nameCandidates(importPath)
	for _, s := range files {
		explained := v.explained(s, nil)
		for _, name := range names {
			if s.bases[name] && !explained[name] {
				counts[name]++
			}
		}
	}
	found := ""
	for _, name := range names {
		if counts[name] > counts[found] {
			found = name
		}
	}
	return found
}

// leftoverName returns the one name that all files use and that nothing else explains, or "".
func leftoverName(v *view, files []*source, names map[string]string) string {
	common := map[string]int{}
	for _, s := range files {
		explained := v.explained(s, names)
		for name := range v.declaredIn(s.dir) {
			explained[name] = true
		}
		for base := range s.bases {
			if !explained[base] {
				common[base]++
			}
		}
	}
	found := ""
	for base, count := range common {
		if count == len(files) {
			if found != "" {
				return ""
			}
			found = base
		}
	}
	return found
}

// explained returns the names that the imports of a file declare; names has those of outside packages.
func (v *view) explained(s *source, names map[string]string) map[string]bool {
	explained := map[string]bool{"unsafe": true, "C": true}
	for _, ref := range s.imports {
		switch {
		case ref.name != "":
			explained[ref.name] = true
		case v.classify(ref.path) == stdImport:
			explained[stdName(ref.path)] = true
		case v.classify(ref.path) == ownImport:
			explained[v.nameOf(ref.path)] = true
		default:
			explained[names[ref.path]] = true
		}
	}
	return explained
}
