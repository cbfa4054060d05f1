package main

import (
	"errors"
	"fmt"
	"go/types"
	"sort"
	"strings"
)

// nodeKind tells the packages apart that one folder can make.
type nodeKind int

const (
	libNode      nodeKind = iota // what importers see
	testNode                     // lib and its in-package tests
	externalNode                 // the _test package
	variantNode                  // a lib that imports, over any number of steps, a testNode instead of its lib
)

// node is one package of one view, waiting for the packages it imports.
type node struct {
	view     *view
	kind     nodeKind
	path     string
	files    []*source
	targets  map[string]target
	problems []Problem // imports that cannot work
	wanted   bool      // asked for by somebody
	reported bool

	base *node // of a variant: the lib it is another reading of

	index   int
	waiting int
	users   []*node
	unit    *unit
}

// target is what an import path means to a node.
type target struct {
	kind    importKind
	node    *node  // of an own package
	message string // why an own or missing package cannot be imported
	code    string
}

// name is how the go command writes the package.
func (n *node) name() string {
	switch n.kind {
	case testNode:
		return n.path + " [tests]"
	case externalNode:
		return n.path + "_test"
	}
	return n.path
}

// plan makes the nodes of a view, imports before importers where there is no cycle.
func plan(v *view, report map[string]bool) []*node {
	p := &planner{view: v, libs: map[string]*node{}}
	var paths []string
	for path := range v.packages {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for _, path := range paths {
		if files := v.packages[path]; len(files.lib) > 0 {
			p.libs[path] = p.add(libNode, path, files.lib)
		}
	}
	p.findCycles(paths)
	for _, n := range p.nodes {
		p.resolve(n, n.files, func(target string) *node { return p.libs[target] })
	}
	for _, path := range paths {
		files := v.packages[path]
		var tests *node
		if len(files.tests) > 0 {
			tests = p.addTests(path, files)
		}
		if len(files.external) > 0 {
			p.addExternal(path, files, tests)
		}
	}
	for _, n := range p.nodes {
		n.reported = n.kind != variantNode && (report == nil || report[n.path])
		if n.reported {
			n.want()
		}
	}
	return p.nodes
}

type planner struct {
	view      *view
	nodes     []*node
	libs      map[string]*node
	cycle     map[string]int // number of the import cycle a lib is part of, 0 for none
	importers map[string][]string
}

func (p *planner) add(kind nodeKind, path string, files []*source) *node {
	n := &node{view: p.view, kind: kind, path: path, files: files, targets: map[string]target{}}
	p.nodes = append(p.nodes, n)
	return n
}

// addTests adds a package with its in-package tests.
func (p *planner) addTests(path string, files *packageFiles) *node {
	n := p.add(testNode, path, append(append([]*source(nil), files.lib...), files.tests...))
	reach := p.reaching(path)
	if lib := p.libs[path]; lib != nil {
		for imported, t := range lib.targets {
			n.targets[imported] = t
		}
	}
	p.resolve(n, files.tests, func(target string) *node { return p.libs[target] })
	for imported, t := range n.targets {
		if t.node != nil && reach[t.node.path] {
			t.node = nil
			t.message = fmt.Sprintf("import cycle not allowed in test: %s", strings.Join(p.route(imported, path, nil), " imports "))
			t.code = "import-cycle"
			n.targets[imported] = t
			n.report(files.tests, imported, t)
		}
	}
	return n
}

// addExternal adds a _test package. It imports the package under test with its in-package tests, and so does
// everything else it imports.
func (p *planner) addExternal(path string, files *packageFiles, tests *node) {
	variants := map[string]*node{}
	var reach map[string]bool
	if tests != nil {
		reach = p.reaching(path)
	}
	var lookup func(target string) *node
	lookup = func(target string) *node {
		lib := p.libs[target]
		switch {
		case target == path && tests != nil:
			return tests
		case lib == nil || !reach[target]:
			return lib
		case variants[target] == nil:
			variant := p.add(variantNode, target, lib.files)
			variant.base = lib
			variants[target] = variant
			for imported, t := range lib.targets {
				if t.node != nil {
					t.node = lookup(t.node.path)
				}
				variant.targets[imported] = t
			}
		}
		return variants[target]
	}
	n := p.add(externalNode, path, files.external)
	p.resolve(n, files.external, lookup)
}

// resolve gives every import of the files its target and reports those that cannot work.
func (p *planner) resolve(n *node, files []*source, lookup func(string) *node) {
	for _, s := range files {
		for _, ref := range s.imports {
			if _, done := n.targets[ref.path]; done {
				continue
			}
			t := p.target(n, ref.path, lookup)
			n.targets[ref.path] = t
			if t.message != "" {
				n.report(files, ref.path, t)
			}
		}
	}
}

func (p *planner) target(n *node, path string, lookup func(string) *node) target {
	t := target{kind: p.view.classify(path), code: "import"}
	switch t.kind {
	case cgoImport, unsafeImport:
		return t
	case missingImport:
		t.message = fmt.Sprintf("no required module provides package %s", path)
		return t
	}
	if !internalAllowed(n.path, path) {
		t.message = fmt.Sprintf("use of internal package %s not allowed", path)
		return t
	}
	if t.kind != ownImport {
		return t
	}
	imported := lookup(path)
	switch {
	case p.view.packages[path] == nil:
		t.message = fmt.Sprintf("package %s is not in the module, or build constraints exclude all its files", path)
	case imported == nil:
		t.message = fmt.Sprintf("package %s has only test files", path)
	case imported.files[0].pkgName == "main" && !(n.kind == externalNode && n.path == path):
		t.message = fmt.Sprintf("package %s is a program, not an importable package", path)
	case n.kind == libNode && p.cycle[path] != 0 && p.cycle[path] == p.cycle[n.path]:
		t.message = "import cycle not allowed: " + strings.Join(p.route(path, n.path, []string{n.path}), " imports ")
		t.code = "import-cycle"
	default:
		t.node = imported
	}
	return t
}

// report adds a problem at every import of the path.
func (n *node) report(files []*source, path string, t target) {
	for _, s := range files {
		for _, ref := range s.imports {
			if ref.path == path {
				n.problems = append(n.problems, problemAt(s, ref.spec.Path.Pos(), t.message, t.code))
			}
		}
	}
}

// internalAllowed applies the rule for paths with an element "internal".
func internalAllowed(importer, imported string) bool {
	at := strings.LastIndex("/"+imported+"/", "/internal/")
	if at < 0 {
		return true
	}
	parent := strings.TrimSuffix(imported[:at], "/")
	return importer == parent || parent != "" && strings.HasPrefix(importer, parent+"/")
}

// imports lists the own libs a lib imports, in order.
func (p *planner) imports(path string) []string {
	lib := p.libs[path]
	if lib == nil {
		return nil
	}
	var list []string
	for _, s := range lib.files {
		for _, ref := range s.imports {
			if p.libs[ref.path] != nil {
				list = append(list, ref.path)
			}
		}
	}
	return list
}

// findCycles numbers the strongly connected parts of the import graph that hold a cycle (Tarjan's algorithm).
func (p *planner) findCycles(paths []string) {
	p.cycle = map[string]int{}
	index, low, onStack := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	cycles := 0
	var visit func(path string)
	visit = func(path string) {
		index[path] = len(index) + 1
		low[path] = index[path]
		stack = append(stack, path)
		onStack[path] = true
		self := false
		for _, next := range p.imports(path) {
			self = self || next == path
			if index[next] == 0 {
				visit(next)
				low[path] = min2(low[path], low[next])
			} else if onStack[next] {
				low[path] = min2(low[path], index[next])
			}
		}
		if low[path] != index[path] {
			return
		}
		var part []string
		for {
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			onStack[top] = false
			part = append(part, top)
			if top == path {
				break
			}
		}
		if len(part) > 1 || self {
			cycles++
			for _, member := range part {
				p.cycle[member] = cycles
			}
		}
	}
	for _, path := range paths {
		if index[path] == 0 {
			visit(path)
		}
	}
}

func min2(a, b int) int {
	if a < b {
		return a
	}
	return b
}

// reaching returns the libs that import path, over any number of steps, without path itself.
func (p *planner) reaching(path string) map[string]bool {
	if p.importers == nil {
		p.importers = map[string][]string{}
		for lib := range p.libs {
			for _, next := range p.imports(lib) {
				p.importers[next] = append(p.importers[next], lib)
			}
		}
	}
	found := map[string]bool{}
	queue := []string{path}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		for _, lib := range p.importers[next] {
			if !found[lib] {
				found[lib] = true
				queue = append(queue, lib)
			}
		}
	}
	delete(found, path)
	return found
}

// route returns prefix and a shortest chain of imports between two libs, ends included.
func (p *planner) route(from, to string, prefix []string) []string {
	before := map[string]string{from: ""}
	queue := []string{from}
	for len(queue) > 0 && before[to] == "" && from != to {
		next := queue[0]
		queue = queue[1:]
		for _, imported := range p.imports(next) {
			if _, seen := before[imported]; !seen {
				before[imported] = next
				queue = append(queue, imported)
			}
		}
	}
	var chain []string
	for at := to; at != ""; at = before[at] {
		chain = append([]string{at}, chain...)
	}
	return append(prefix, chain...)
}

// want marks the node and all it imports as needed.
func (n *node) want() {
	if n.wanted {
		return
	}
	n.wanted = true
	if n.base != nil {
		n.base.want()
	}
	for _, t := range n.targets {
		if t.node != nil {
			t.node.want()
		}
	}
}

// errUnknown makes the checker take a package as given and every use of it as right.
var errUnknown = errors.New("unknown package")

// imported returns the checked package of a target, or an error if it is unknown.
func (n *node) imported(path string) (*types.Package, error) {
	t := n.targets[path]
	switch {
	case t.message != "":
		return nil, errUnknown
	case t.kind == unsafeImport:
		return types.Unsafe, nil
	case t.kind == stdImport:
		return n.view.std.Import(path)
	case t.kind == knownImport:
		return n.view.known.Import(path)
	case t.node != nil && t.node.unit.pkg != nil:
		return t.node.unit.pkg, nil
	}
	return nil, errUnknown
}
