package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"regexp"
	"sort"
	"strings"
)

// unit is the result for all nodes with equal files and equal imports.
type unit struct {
	pkg      *types.Package // what importers see; nil: unknown
	problems []Problem
	reason   string // why the package is not verified, "" if it is
	done     bool
	waiters  []*node
}

// Error codes of go/types that the filters below depend on; their numbers are fixed for all Go versions.
const (
	codeBrokenImport         = 6
	codeUnusedImport         = 8
	codeWrongAssignCount     = 17
	codeInvalidIfaceAssign   = 21
	codeIncompatibleAssign   = 23
	codeUntypedLit           = 70
	codeUnexportedName       = 74
	codeUndeclaredName       = 75
	codeMissingFieldOrMethod = 76
	codeUnusedVar            = 101
	codeWrongResultCount     = 103
	codeWrongArgCount        = 126
	codeCannotInferTypeArgs  = 138
)

var codeNames = map[int]string{
	3: "package-name", 9: "init-cycle", 10: "duplicate-declaration", codeUnusedImport: "unused-import",
	codeWrongAssignCount: "assignment-count", 19: "no-new-variable", codeInvalidIfaceAssign: "missing-method", codeIncompatibleAssign: "incompatible-type",
	73: "undefined", codeUnexportedName: "undefined", codeUndeclaredName: "undefined", codeMissingFieldOrMethod: "missing-field-or-method",
	codeUnusedVar: "unused-variable", 102: "missing-return", codeWrongResultCount: "result-count", codeWrongArgCount: "argument-count",
}

// checker checks one node.
type checker struct {
	node   *node
	fset   *token.FileSet
	limits *Limits
	apis   *apis
	files  []*ast.File
	byPos  map[*token.File]*source
	info   *types.Info
	pkg    *types.Package
	raw    []types.Error
	hollow map[string]bool    // see mentionsHollow
	starts map[token.Pos]bool // see said
	unit   *unit
}

// check type-checks the files of a node against its imports, which are done. Without bodies only the API is
// made and nothing is reported.
func check(n *node, fset *token.FileSet, limits *Limits, apis *apis, bodies bool) (result *unit) {
	c := &checker{node: n, fset: fset, limits: limits, apis: apis, byPos: map[*token.File]*source{}, unit: &unit{}}
	defer func() {
		if caught := recover(); caught != nil {
			result = &unit{reason: fmt.Sprintf("the type checker failed: %v", caught)}
		}
	}()
	if !c.readable() {
		return c.unit
	}
	for _, s := range n.files {
		file := s.ast
		if n.kind == testNode && !s.isTest() {
			file = s.signatures()
		}
		c.files = append(c.files, file)
		c.byPos[fset.File(s.ast.FileStart)] = s
	}
	c.run(bodies)
	if bodies {
		for i := range c.raw {
			c.judge(&c.raw[i])
		}
		c.findUnusedOutside()
		c.findHiddenMismatches()
	}
	sortProblems(c.unit.problems)
	if n.kind != externalNode {
		c.unit.pkg = apis.canonical(c.pkg, c.testFunction)
	}
	return c.unit
}

// readable reports whether every file can be checked and notes those that cannot.
func (c *checker) readable() bool {
	for _, s := range c.node.files {
		c.unit.problems = append(c.unit.problems, s.syntax...)
		if s.reason != "" {
			c.unit.reason = s.path + ": " + s.reason
		} else if len(s.syntax) > 0 && c.unit.reason == "" {
			c.unit.reason = s.path + ": syntax error"
		}
	}
	return c.unit.reason == ""
}

// importerFunc makes a function a types.Importer.
type importerFunc func(string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }

func (c *checker) run(bodies bool) {
	v := c.node.view
	conf := types.Config{
		GoVersion:        v.language,
		IgnoreFuncBodies: !bodies,
		FakeImportC:      true,
		Importer:         importerFunc(c.node.imported),
		Sizes:            types.SizesFor("gc", v.std.ctx.GOARCH),
		Error: func(err error) {
			e := err.(types.Error)
			switch {
			case strings.HasPrefix(e.Msg, "\t"): // second part of the error before
			case c.plainlyUnknown(&e):
			case len(c.raw) >= 20*c.limits.PackageErrors: // judge drops some, but not the most
				c.unit.reason = c.tooMany()
			default:
				c.raw = append(c.raw, e)
			}
		},
	}
	if bodies {
		c.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}}
	}
	c.pkg, _ = conf.Check(c.node.path, c.fset, c.files, c.info)
}

// testFunction reports whether nobody but the test runner calls the object.
func (c *checker) testFunction(obj types.Object) bool {
	s := c.byPos[c.fset.File(obj.Pos())]
	if s == nil || !s.isTest() {
		return false
	}
	for _, prefix := range []string{"Test", "Benchmark", "Fuzz", "Example"} {
		if _, ok := obj.(*types.Func); ok && strings.HasPrefix(obj.Name(), prefix) {
			return true
		}
	}
	return false
}

// place returns the file of an error; one about the package as a whole goes to its first package clause.
func (c *checker) place(e *types.Error) (*source, token.Pos) {
	if s := c.byPos[c.fset.File(e.Pos)]; s != nil {
		return s, e.Pos
	}
	s := c.node.files[0]
	return s, s.ast.Name.Pos()
}

// plainlyUnknown reports whether the text alone shows that an error comes from an unknown package. There can
// be any number of these.
func (c *checker) plainlyUnknown(e *types.Error) bool {
	s, _ := c.place(e)
	switch code := errorCode(e); code {
	case codeBrokenImport: // the planner reports those that are not outside
		return true
	case codeUndeclaredName:
		return s.dotImportsUnknown(c.node) && token.IsExported(strings.TrimPrefix(e.Msg, "undefined: "))
	case codeUntypedLit: // its type is told by a literal around it, which is of unknown type
		return true
	case codeWrongArgCount, codeWrongResultCount:
		return false // the counts are known
	default: // see findHiddenMismatches
		return strings.Contains(e.Msg, "invalid type") || strings.Contains(e.Msg, "invalid operand") || unknownConstant.MatchString(e.Msg)
	}
}

var unknownConstant = regexp.MustCompile(`\b(key|constant) unknown\b`)

// judge keeps an error that unknown packages cannot have caused.
func (c *checker) judge(e *types.Error) {
	s, pos := c.place(e)
	code := errorCode(e)
	switch {
	case code == codeWrongArgCount && c.passesUnknownCall(s, pos),
		(code == codeCannotInferTypeArgs || strings.HasPrefix(e.Msg, "implicitly instantiated")) && c.passesUnknown(s, pos),
		code == codeUnusedImport && s.usesImportAt(c.node, pos),
		code == codeUnusedVar && s.usesVariableAt(pos),
		code == codeMissingFieldOrMethod && c.selectsFromUnknown(s, pos),
		strings.Contains(e.Msg, "missing method") && c.involvesUnknown(s, e),
		codeNames[code] != "undefined" && c.mentionsHollow(e.Msg):
		return
	}
	message, name := e.Msg, codeNames[code]
	if name == "" {
		name = fmt.Sprintf("types-%d", code)
	}
	if code == codeUnexportedName {
		// Which unexported names a package has is no part of its API, so equal packages may differ in it.
		if sel := selectorAt(s, pos); sel != nil {
			message = "undefined: " + types.ExprString(sel)
		}
	}
	c.add(problemAt(s, pos, message, name))
}

// add keeps a problem while there is room.
func (c *checker) add(problem Problem) {
	if len(c.unit.problems) >= c.limits.PackageErrors {
		c.unit.reason = c.tooMany()
		return
	}
	c.unit.problems = append(c.unit.problems, problem)
}

func (c *checker) tooMany() string { return fmt.Sprintf("more than %d errors", c.limits.PackageErrors) }

// errorCode reads the code that go/types keeps unexported; 0 if a future version does without.
func errorCode(e *types.Error) int {
	if code := reflect.ValueOf(e).Elem().FieldByName("go116code"); code.IsValid() {
		return int(code.Int())
	}
	return 0
}

// extent reads the range of an error in the same way.
func extent(e *types.Error) (start, end token.Pos) {
	v := reflect.ValueOf(e).Elem()
	if from, to := v.FieldByName("go116start"), v.FieldByName("go116end"); from.IsValid() && to.IsValid() {
		return token.Pos(from.Int()), token.Pos(to.Int())
	}
	return e.Pos, e.Pos
}

// dotImportsUnknown reports whether an unknown package may declare any exported name of the file.
func (s *source) dotImportsUnknown(n *node) bool {
	for _, ref := range s.imports {
		if ref.name == "." {
			if _, err := n.imported(ref.path); err != nil {
				return true
			}
		}
	}
	return false
}

// usesImportAt reports whether the file uses the import at pos where the checker did not look.
func (s *source) usesImportAt(n *node, pos token.Pos) bool {
	for _, ref := range s.imports {
		if ref.spec.Pos() <= pos && pos < ref.spec.End() {
			name := ref.name
			if name == "" {
				if pkg, err := n.imported(ref.path); err == nil {
					name = pkg.Name()
				}
			}
			return s.bases[name]
		}
	}
	return false
}

// usesVariableAt reports whether the variable declared at pos is read anywhere, also where the checker did
// not look because an unknown type stood in the way.
func (s *source) usesVariableAt(pos token.Pos) bool {
	var object *ast.Object
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Pos() == pos {
			object = id.Obj
		}
		return object == nil
	})
	if object == nil {
		return false
	}
	writes := map[*ast.Ident]bool{}
	used := false
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if id, ok := left.(*ast.Ident); ok {
					writes[id] = true
				}
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				writes[id] = true
			}
		case *ast.RangeStmt:
			for _, left := range []ast.Expr{n.Key, n.Value} {
				if id, ok := left.(*ast.Ident); ok {
					writes[id] = true
				}
			}
		case *ast.Ident:
			used = used || n.Obj == object && !writes[n]
		}
		return !used
	})
	return used
}

// findUnusedOutside reports imports of unknown packages that the file does not use; go/types takes all as used.
func (c *checker) findUnusedOutside() {
	for _, s := range c.node.files {
		for _, ref := range s.imports {
			if c.node.targets[ref.path].kind != outsideImport || ref.name == "_" || ref.name == "." || s.bases[ref.name] {
				continue
			}
			c.add(problemAt(s, ref.spec.Pos(), fmt.Sprintf("%q imported and not used", ref.path), codeNames[codeUnusedImport]))
		}
	}
}

// problemAt places a message and names the declaration around it. Line directives in the text are ignored.
func problemAt(s *source, pos token.Pos, message, code string) Problem {
	offset := int(pos - s.ast.FileStart)
	if offset < 0 || offset > len(s.text) {
		offset = 0
	}
	before := s.text[:offset]
	line := strings.Count(before, "\n") + 1
	return Problem{
		Path: s.path, Line: line, Column: offset - strings.LastIndexByte(before, '\n'),
		Message: message, Code: code, Decl: declarationAt(s.ast, pos), text: s.line(line),
	}
}

// declarationAt names the top-level declaration around pos.
func declarationAt(file *ast.File, pos token.Pos) string {
	for _, decl := range file.Decls {
		if pos < decl.Pos() || pos >= decl.End() {
			continue
		}
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil || len(decl.Recv.List) == 0 {
				return decl.Name.Name
			}
			return receiver(decl.Recv.List[0].Type) + "." + decl.Name.Name
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if pos < spec.Pos() || pos >= spec.End() {
					continue
				}
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					return "type " + spec.Name.Name
				case *ast.ValueSpec:
					return decl.Tok.String() + " " + spec.Names[0].Name
				}
			}
			return decl.Tok.String()
		}
	}
	return ""
}

// receiver writes a receiver type as Go does in (*T).M.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return "(*" + receiver(t.X) + ")"
	case *ast.Ident:
		return t.Name
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	}
	return "?"
}

func sortProblems(list []Problem) {
	sort.SliceStable(list, func(a, b int) bool {
		x, y := &list[a], &list[b]
		if x.Path != y.Path {
			return x.Path < y.Path
		}
		if x.Line != y.Line {
			return x.Line < y.Line
		}
		if x.Column != y.Column {
			return x.Column < y.Column
		}
		return x.Message < y.Message
	})
}
