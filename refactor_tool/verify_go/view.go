package main

import (
	"fmt"
	"go/build"
	"path"
	"sort"
	"strings"
)

// module is one tree read as a Go module: what every configuration shares.
type module struct {
	path     string
	tree     *Tree
	mod      modfile
	language string
	nested   map[string]bool // folders with a go.mod of their own
	sources  []*source       // files the go command would consider, by path
	note     TreeNote
}

// view is a module as one configuration sees it.
type view struct {
	*module
	config   int
	std      *standard
	known    *knownPackages
	sources  []*source // files the configuration selects
	packages map[string]*packageFiles
	kinds    map[string]importKind // memo of classify
}

// packageFiles are the files of one folder by the package they make.
type packageFiles struct {
	dir                  string
	lib, tests, external []*source
}

// importKind says where an imported package comes from.
type importKind int

const (
	outsideImport importKind = iota
	stdImport
	ownImport
	unsafeImport
	cgoImport
	knownImport
	missingImport // nothing can provide it
)

// readModules sorts the files of every tree into a module.
func readModules(req *Request, sources map[sourceKey]*source) []*module {
	var modules []*module
	for i := range req.Trees {
		tree := &req.Trees[i]
		m := &module{path: req.Module, tree: tree, nested: map[string]bool{}, note: TreeNote{Name: tree.Name, NotVerified: []NotVerified{}}}
		if blob, ok := tree.Files["go.mod"]; ok {
			m.mod = parseModfile(req.contents[blob])
			m.language = usableLanguage(m.mod.language)
		}
		m.note.Language = m.language
		for file := range tree.Files {
			if dir, name := path.Split(file); name == "go.mod" && dir != "" {
				m.nested[strings.TrimSuffix(dir, "/")] = true
			}
		}
		left := map[string]int{} // folder that keeps files out: how many
		for file, blob := range tree.Files {
			s := sources[sourceKey{file, blob}]
			if s == nil || s.isTest() && req.NoTests {
				continue
			}
			if dir := ignoredBy(s.dir); dir != "" {
				left[dir]++
			} else if dir := m.nestedModule(s.dir); dir != "" {
				left[dir]++
			} else if !s.anySelected() {
				m.note.NotVerified = append(m.note.NotVerified, NotVerified{importPath(m.path, s.dir), s.path, "no configuration selects the file"})
			} else {
				m.sources = append(m.sources, s)
			}
		}
		for dir, files := range left {
			reason := fmt.Sprintf("%d files in a folder the go command leaves out", files)
			if m.nested[dir] {
				reason = fmt.Sprintf("%d files in a module of its own", files)
			}
			m.note.NotVerified = append(m.note.NotVerified, NotVerified{importPath(m.path, dir), dir, reason})
		}
		sortNotVerified(m.note.NotVerified)
		sort.Slice(m.sources, func(a, b int) bool { return m.sources[a].path < m.sources[b].path })
		modules = append(modules, m)
	}
	return modules
}

// usableLanguage drops a language version that this toolchain is too old to check.
func usableLanguage(language string) string {
	for _, tag := range build.Default.ReleaseTags {
		if tag == language {
			return language
		}
	}
	return ""
}

// nestedModule returns the folder whose go.mod takes dir out of this module, or "".
func (m *module) nestedModule(dir string) string {
	for ; dir != "" && dir != "."; dir = path.Dir(dir) {
		if m.nested[dir] {
			return dir
		}
	}
	return ""
}

func (s *source) anySelected() bool {
	for _, selected := range s.selected {
		if selected {
			return true
		}
	}
	return false
}

// newView groups the files a configuration selects by package.
func newView(m *module, config int, std *standard, known *knownPackages) *view {
	v := &view{module: m, config: config, std: std, known: known, packages: map[string]*packageFiles{}, kinds: map[string]importKind{}}
	for _, s := range m.sources {
		if !s.selected[config] {
			continue
		}
		v.sources = append(v.sources, s)
		p := importPath(m.path, s.dir)
		files := v.packages[p]
		if files == nil {
			files = &packageFiles{dir: s.dir}
			v.packages[p] = files
		}
		switch {
		case s.isExternalTest():
			files.external = append(files.external, s)
		case s.isTest():
			files.tests = append(files.tests, s)
		default:
			files.lib = append(files.lib, s)
		}
	}
	return v
}

// classify says where the package of an import path comes from. Not for several goroutines at once.
func (v *view) classify(p string) importKind {
	kind, seen := v.kinds[p]
	if !seen {
		kind = v.source(p)
		v.kinds[p] = kind
	}
	return kind
}

func (v *view) source(p string) importKind {
	first, _, _ := strings.Cut(p, "/")
	switch {
	case p == "C":
		return cgoImport
	case p == "unsafe":
		return unsafeImport
	case !strings.Contains(first, ".") && v.std.has(p):
		return stdImport
	case p == v.path || strings.HasPrefix(p, v.path+"/"):
		dir := strings.TrimPrefix(strings.TrimPrefix(p, v.path), "/")
		if v.nestedModule(dir) == "" && ignoredBy(dir) == "" && !v.mod.providesWithin(v.path, p) {
			return ownImport
		}
	case strings.HasPrefix(p, "./") || strings.HasPrefix(p, "../") || strings.HasPrefix(p, "/"):
		return missingImport
	case v.mod.present && !v.mod.provides(p):
		if v.std.available || strings.Contains(first, ".") {
			return missingImport
		}
	}
	if v.known.has(p) && !v.mod.replaced[p] {
		return knownImport
	}
	return outsideImport
}

// declaredIn returns the package-level names of a folder.
func (v *view) declaredIn(dir string) map[string]bool {
	names := map[string]bool{}
	for _, s := range v.sources {
		if s.dir == dir && s.ast != nil && s.ast.Scope != nil {
			for name := range s.ast.Scope.Objects {
				names[name] = true
			}
		}
	}
	return names
}

// nameOf returns the package name of one of the module's own packages, or "".
func (v *view) nameOf(p string) string {
	if files := v.packages[p]; files != nil && len(files.lib) > 0 {
		return files.lib[0].pkgName
	}
	return ""
}

func sortNotVerified(list []NotVerified) {
	sort.Slice(list, func(a, b int) bool {
		x, y := list[a], list[b]
		if x.Package != y.Package {
			return x.Package < y.Package
		}
		if x.Path != y.Path {
			return x.Path < y.Path
		}
		return x.Reason < y.Reason
	})
}
