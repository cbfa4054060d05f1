package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"
)

// source is one Go file of one content: everything about it that no configuration changes.
type source struct {
	path, dir, name string
	blob, text      string
	reason          string // why it is not parsed; ast is nil then
	syntax          []Problem
	ast             *ast.File
	pkgName         string
	imports         []*importRef
	bases           map[string]bool // names x of selectors x.Sel that nothing in the file declares
	selected        []bool          // per configuration: do its build constraints take the file

	signaturesOnce sync.Once
	signaturesAST  *ast.File
}

// importRef is one import of a file.
type importRef struct {
	path string
	name string // as declared; "" for none
	spec *ast.ImportSpec
}

// isTest reports whether only `go test` compiles the file.
func (s *source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

// isExternalTest reports whether the file belongs to the package with the _test suffix.
func (s *source) isExternalTest() bool { return s.isTest() && strings.HasSuffix(s.pkgName, "_test") }

// sourceKey identifies a source over all trees.
type sourceKey struct{ path, blob string }

// loadSources parses every Go file of the request once, whatever number of trees hold it.
func loadSources(req *Request, fset *token.FileSet) map[sourceKey]*source {
	sources := map[sourceKey]*source{}
	var order []*source
	for _, tree := range req.Trees {
		for file, blob := range tree.Files {
			key := sourceKey{file, blob}
			if !strings.HasSuffix(file, ".go") || sources[key] != nil {
				continue
			}
			dir, name := path.Split(file)
			s := &source{path: file, dir: strings.TrimSuffix(dir, "/"), name: name, blob: blob, text: req.contents[blob]}
			sources[key] = s
			order = append(order, s)
		}
	}
	parallel(req.Workers, len(order), func(i int) { order[i].load(fset, req) })
	return sources
}

// load fills in what the text of the file says.
func (s *source) load(fset *token.FileSet, req *Request) {
	s.selected = make([]bool, len(req.Configs))
	if ignoredBy(s.dir) != "" {
		return
	}
	for i := range req.Configs {
		s.selected[i] = s.matches(&req.Configs[i])
	}
	if len(s.text) > req.Limits.FileBytes {
		s.reason = fmt.Sprintf("file of %d bytes, more than the limit of %d", len(s.text), req.Limits.FileBytes)
		return
	}
	file, err := parser.ParseFile(fset, s.path, s.text, 0)
	if file == nil {
		s.reason = "not readable as Go: " + err.Error()
		return
	}
	s.ast = file
	s.pkgName = file.Name.Name
	if s.pkgName == "documentation" && !s.isTest() {
		s.selected = make([]bool, len(req.Configs)) // as the go command has it
	}
	s.syntax = syntaxProblems(s, err)
	var deep bool
	s.bases, deep = unresolvedBases(file, req.Limits.Depth)
	if deep {
		s.reason = fmt.Sprintf("syntax nested deeper than the limit of %d", req.Limits.Depth)
	}
	cgo := false
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // a syntax problem already
		}
		ref := &importRef{path: imported, spec: spec}
		if spec.Name != nil {
			ref.name = spec.Name.Name
		}
		cgo = cgo || imported == "C"
		s.imports = append(s.imports, ref)
	}
	for i := range req.Configs {
		s.selected[i] = s.selected[i] && !(cgo && req.Configs[i].NoCgo)
	}
}

// matches evaluates file name suffix and build constraints as the go command does.
func (s *source) matches(c *Config) bool {
	ctx := buildContext(c.GOOS, c.GOARCH, c.Tags)
	ctx.CgoEnabled = !c.NoCgo
	ctx.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s.text)), nil }
	match, err := ctx.MatchFile("", s.name)
	return match || err != nil // what cannot be read is looked at, and reported by the parser
}

// buildContext returns constraints of one system; release tags are those of this toolchain.
func buildContext(goos, goarch string, tags []string) build.Context {
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH, ctx.BuildTags, ctx.CgoEnabled = goos, goarch, tags, false
	return ctx
}

// signatures returns the file without function bodies, for a package whose bodies are checked elsewhere.
func (s *source) signatures() *ast.File {
	s.signaturesOnce.Do(func() {
		file := *s.ast
		file.Decls = nil
		for _, decl := range s.ast.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Type.TypeParams == nil {
				if f.Recv == nil && f.Name.Name == "init" {
					continue // the checker wants a body
				}
				bodiless := *f
				bodiless.Body = nil
				decl = &bodiless
			}
			file.Decls = append(file.Decls, decl)
		}
		s.signaturesAST = &file
	})
	return s.signaturesAST
}

// line returns the 1-based source line without the space around it.
func (s *source) line(number int) string {
	rest := s.text
	for ; number > 1; number-- {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	line, _, _ := strings.Cut(rest, "\n")
	if len(line) > 1000 {
		line = line[:1000]
	}
	return strings.TrimSpace(line)
}

// syntaxProblems turns the parser's errors into problems of the file.
func syntaxProblems(s *source, err error) []Problem {
	if err == nil {
		return nil
	}
	list, ok := err.(scanner.ErrorList)
	if !ok {
		return []Problem{{Path: s.path, Line: 1, Column: 1, Message: err.Error(), Code: "syntax"}}
	}
	var problems []Problem
	for _, e := range list {
		problems = append(problems, Problem{Path: s.path, Line: e.Pos.Line, Column: e.Pos.Column, Message: e.Msg,
			Code: "syntax", text: s.line(e.Pos.Line)})
	}
	return problems
}

// unresolvedBases collects the x of every x.Sel that the file itself does not declare; deep says that the
// tree is nested beyond the limit and was not looked at further.
func unresolvedBases(file *ast.File, limit int) (bases map[string]bool, deep bool) {
	bases = map[string]bool{}
	depth := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			depth--
			return true
		}
		if depth++; depth > limit {
			deep = true
			depth--
			return false
		}
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Obj == nil {
				bases[x.Name] = true
			}
		}
		return true
	})
	return bases, deep
}

// ignoredBy returns the folder that makes the go command leave dir out of ./..., or "".
func ignoredBy(dir string) string {
	parts := strings.Split(dir, "/")
	for i, part := range parts {
		if part == "testdata" || part == "vendor" || strings.HasPrefix(part, "_") || strings.HasPrefix(part, ".") {
			return strings.Join(parts[:i+1], "/")
		}
	}
	return ""
}

// parallel calls work for 0 to n-1 on several goroutines and returns when all are done.
func parallel(workers, n int, work func(int)) {
	next := make(chan int)
	var group sync.WaitGroup
	for w := 0; w < workers; w++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range next {
				work(i)
			}
		}()
	}
	for i := 0; i < n; i++ {
		next <- i
	}
	close(next)
	group.Wait()
}
