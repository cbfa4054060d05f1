package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
)

// standard gives the standard library's declarations for one system, from GOROOT/src, each package once.
// Function bodies are left out, and with them every import that only bodies need.
type standard struct {
	available bool
	goroot    string
	ctx       build.Context
	fset      *token.FileSet
	files     *stdFiles
	apis      *apis
	loaded    atomic.Int64

	mu       sync.Mutex
	packages map[string]*stdPackage
	known    map[string]bool
}

type stdPackage struct {
	once sync.Once
	pkg  *types.Package
}

// stdFiles holds what all systems share of the standard library: its files, and each package whose files and
// imports are the same for several systems.
type stdFiles struct {
	mu    sync.Mutex
	files map[string]*stdFile
	made  map[string]*stdPackage
}

type stdFile struct {
	read, parse sync.Once
	text        string
	ast         *ast.File
}

var stdPath = regexp.MustCompile(`^[a-z0-9_]+(/[a-z0-9_]+)*$`)

func newStandard(goroot string, config *Config, fset *token.FileSet, files *stdFiles, apis *apis) *standard {
	info, err := os.Stat(filepath.Join(goroot, "src", "errors"))
	return &standard{
		available: goroot != "" && err == nil && info.IsDir(),
		goroot:    goroot,
		ctx:       buildContext(config.GOOS, config.GOARCH, nil),
		fset:      fset,
		files:     files,
		apis:      apis,
		packages:  map[string]*stdPackage{},
		known:     map[string]bool{},
	}
}

// has reports whether the path names a package of the standard library that a module may import.
func (s *standard) has(p string) bool {
	if !s.available || !stdPath.MatchString(p) || strings.HasPrefix(p, "cmd/") || strings.HasPrefix(p, "vendor/") || p == "builtin" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, seen := s.known[p]
	if !seen {
		found = len(s.sourceNames(filepath.Join(s.goroot, "src", p))) > 0
		s.known[p] = found
	}
	return found
}

// Import implements types.Importer for users and for the library itself.
func (s *standard) Import(p string) (*types.Package, error) {
	if p == "unsafe" {
		return types.Unsafe, nil
	}
	s.mu.Lock()
	entry := s.packages[p]
	if entry == nil {
		entry = &stdPackage{}
		s.packages[p] = entry
	}
	s.mu.Unlock()
	entry.once.Do(func() { entry.pkg = s.load(p) })
	if entry.pkg == nil {
		return nil, errors.New("not in the standard library")
	}
	return entry.pkg, nil
}

func (s *standard) load(p string) *types.Package {
	var files []*ast.File
	for _, dir := range []string{filepath.Join(s.goroot, "src", p), filepath.Join(s.goroot, "src", "vendor", p)} {
		for _, name := range s.sourceNames(dir) {
			if file := s.files.get(filepath.Join(dir, name)); s.matches(name, file) {
				files = append(files, file.declarations(s.fset, filepath.Join(dir, name)))
			}
		}
		if len(files) > 0 {
			break
		}
	}
	if len(files) == 0 {
		return nil
	}
	s.loaded.Add(1)
	entry := s.files.shared(s.key(p, files))
	entry.once.Do(func() {
		conf := types.Config{Importer: s, IgnoreFuncBodies: true, FakeImportC: true, Error: func(error) {}, Sizes: types.SizesFor("gc", s.ctx.GOARCH)}
		pkg, _ := conf.Check(p, s.fset, files, nil) // errors come from what was left out
		entry.pkg = s.apis.canonical(pkg, nil)
	})
	return entry.pkg
}

// key identifies all that a package depends on, and loads what it imports.
func (s *standard) key(p string, files []*ast.File) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s\n", p, s.ctx.GOARCH)
	for _, file := range files {
		fmt.Fprintf(&text, "%d", file.FileStart)
		for _, spec := range file.Imports {
			if imported, err := s.Import(strings.Trim(spec.Path.Value, `"`)); err == nil {
				fmt.Fprintf(&text, " %d", s.apis.id(imported))
			}
		}
		text.WriteByte('\n')
	}
	return text.String()
}

func (s *standard) sourceNames(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			names = append(names, name)
		}
	}
	return names
}

func (s *standard) matches(name string, file *stdFile) bool {
	ctx := s.ctx
	ctx.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(file.text)), nil }
	match, _ := ctx.MatchFile("", name)
	return match
}

// shared returns the package of a key, which the first to ask makes.
func (f *stdFiles) shared(key string) *stdPackage {
	f.mu.Lock()
	defer f.mu.Unlock()
	entry := f.made[key]
	if entry == nil {
		entry = &stdPackage{}
		f.made[key] = entry
	}
	return entry
}

// get returns the file, read.
func (f *stdFiles) get(path string) *stdFile {
	f.mu.Lock()
	file := f.files[path]
	if file == nil {
		file = &stdFile{}
		f.files[path] = file
	}
	f.mu.Unlock()
	file.read.Do(func() {
		data, _ := os.ReadFile(path) // an unreadable file matches nothing
		file.text = string(data)
	})
	return file
}

// declarations returns the file without function bodies, values of typed variables and needless imports.
func (f *stdFile) declarations(fset *token.FileSet, path string) *ast.File {
	f.parse.Do(func() {
		f.ast, _ = parser.ParseFile(fset, path, f.text, parser.SkipObjectResolution)
		for _, decl := range f.ast.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				decl.Body = nil
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && decl.Tok == token.VAR && v.Type != nil {
						v.Values = nil
					}
				}
			}
		}
		dropImports(f.ast)
	})
	return f.ast
}

// dropImports removes the imports that no selector in the file uses.
func dropImports(file *ast.File) {
	used := map[string]bool{".": true}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	var decls []ast.Decl
	file.Imports = nil
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.IMPORT {
			decls = append(decls, decl)
			continue
		}
		var specs []ast.Spec
		for _, spec := range gen.Specs {
			spec := spec.(*ast.ImportSpec)
			name := stdName(strings.Trim(spec.Path.Value, `"`))
			if spec.Name != nil {
				name = spec.Name.Name
			}
			if used[name] {
				specs = append(specs, spec)
				file.Imports = append(file.Imports, spec)
			}
		}
		if len(specs) > 0 {
			gen.Specs = specs
			decls = append(decls, gen)
		}
	}
	file.Decls = decls
}
