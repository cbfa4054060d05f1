package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"strings"
)

// The checker gives everything from an unknown package the invalid type and then keeps silent about it. Two
// gaps are closed here: it does complain about what an embedded unknown type would have promoted, and it does
// not complain about a mismatch that has nothing to do with the unknown part of a type.

// passesUnknownCall reports whether the call that ends at pos has one argument, an unknown call, which may
// give any number of values.
func (c *checker) passesUnknownCall(s *source, pos token.Pos) bool {
	found := false
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && call.Rparen == pos && len(call.Args) == 1 {
			_, single := call.Args[0].(*ast.CallExpr)
			found = single && unknownOrTuple(c.info.Types[call.Args[0]])
		}
		return n == nil || n.Pos() <= pos && pos < n.End()
	})
	return found
}

// passesUnknown reports whether a call around pos has an unknown argument, from which the checker infers nothing
// or that type parameters are left over.
func (c *checker) passesUnknown(s *source, pos token.Pos) bool {
	found := false
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && call.Pos() <= pos && pos <= call.Rparen {
			for _, arg := range call.Args {
				found = found || mentionsUnknown(c.info.Types[arg].Type)
			}
		}
		return !found && (n == nil || n.Pos() <= pos && pos < n.End())
	})
	return found
}

// selectsFromUnknown reports whether the selector at pos may name something an unknown embedded type promotes.
func (c *checker) selectsFromUnknown(s *source, pos token.Pos) bool {
	sel := selectorAt(s, pos)
	return sel != nil && embedsUnknown(c.info.Types[sel.X].Type, nil)
}

// selectorAt returns the selector whose selected name stands at pos, or nil.
func selectorAt(s *source, pos token.Pos) *ast.SelectorExpr {
	var found *ast.SelectorExpr
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Pos() == pos {
			found = sel
		}
		return n == nil || n.Pos() <= pos && pos < n.End()
	})
	return found
}

// involvesUnknown reports whether the error is about an expression or type that embeds an unknown type.
func (c *checker) involvesUnknown(s *source, e *types.Error) bool {
	start, end := extent(e)
	found := false
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if expr, ok := n.(ast.Expr); ok && n.Pos() == start && n.End() == end {
			found = found || c.embeds(expr)
			if assertion, ok := n.(*ast.TypeAssertExpr); ok {
				found = found || c.embeds(assertion.X) || c.embeds(assertion.Type)
			}
		}
		return n != nil && n.Pos() <= start && end <= n.End()
	})
	return found
}

func (c *checker) embeds(expr ast.Expr) bool {
	t := c.info.Types[expr].Type
	return t != nil && !isUnknown(t) && embedsUnknown(t, nil)
}

var typeName = regexp.MustCompile(`(\w+"?\.)?\w+`)

// mentionsHollow reports whether a message shows a declared type of which only the name is known, such as
// `type T outside.T`: what can be done with it is anybody's guess.
func (c *checker) mentionsHollow(message string) bool {
	if c.hollow == nil {
		c.hollow = map[string]bool{}
		seen := map[*types.Package]bool{}
		c.collectHollow(c.pkg, seen)
		for _, imported := range c.pkg.Imports() {
			c.collectHollow(imported, seen)
		}
	}
	for _, name := range typeName.FindAllString(message, -1) {
		if c.hollow[strings.Replace(name, `"`, "", 1)] {
			return true
		}
	}
	return false
}

// collectHollow notes the hollow types of the module's packages, as messages write them.
func (c *checker) collectHollow(pkg *types.Package, seen map[*types.Package]bool) {
	if seen[pkg] || pkg != c.pkg && !strings.HasPrefix(pkg.Path()+"/", c.node.view.path+"/") {
		return
	}
	seen[pkg] = true
	for _, name := range pkg.Scope().Names() {
		if obj, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok && !obj.IsAlias() && isUnknown(obj.Type().Underlying()) {
			if pkg != c.pkg {
				c.hollow[path.Base(pkg.Path())+"."+name] = true
				name = pkg.Name() + "." + name
			}
			c.hollow[name] = true
		}
	}
	for _, other := range c.apis.references(pkg) {
		c.collectHollow(other, seen)
	}
}

// embedsUnknown reports whether a type may have fields or methods that an unknown embedded type promotes.
func embedsUnknown(t types.Type, seen map[types.Type]bool) bool {
	if t == nil || seen[t] {
		return false
	}
	if seen == nil {
		seen = map[types.Type]bool{}
	}
	seen[t] = true
	switch t := unalias(t).(type) {
	case *types.Basic:
		return t.Kind() == types.Invalid
	case *types.Pointer:
		return embedsUnknown(t.Elem(), seen)
	case *types.Named:
		return embedsUnknown(t.Underlying(), seen)
	case *types.TypeParam:
		return embedsUnknown(t.Constraint(), seen)
	case *types.Struct:
		for i := 0; i < t.NumFields(); i++ {
			if t.Field(i).Embedded() && embedsUnknown(t.Field(i).Type(), seen) {
				return true
			}
		}
	case *types.Interface:
		for i := 0; i < t.NumEmbeddeds(); i++ {
			if embedsUnknown(t.EmbeddedType(i), seen) {
				return true
			}
		}
	}
	return false
}

// findHiddenMismatches looks at calls, returns and assignments whose types are partly unknown. The checker
// drops every message that would show an invalid type; those that do not depend on the unknown part come back.
func (c *checker) findHiddenMismatches() {
	for _, file := range c.files {
		s := c.byPos[c.fset.File(file.FileStart)]
		var around []*types.Signature // of the functions around, nil where that is unknown
		var visit func(n ast.Node) bool
		visit = func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body == nil {
					return false
				}
				c.visitBody(n.Body, c.signature(n.Name), &around, visit)
				return false
			case *ast.FuncLit:
				sig, _ := c.info.Types[n].Type.(*types.Signature)
				c.visitBody(n.Body, sig, &around, visit)
				return false
			case *ast.ReturnStmt:
				if len(around) > 0 && around[len(around)-1] != nil && len(n.Results) > 0 {
					want := around[len(around)-1].Results()
					if c.hidesCount(n.Results, want.Len(), false) {
						c.add(problemAt(s, n.Results[0].Pos(), fmt.Sprintf("%s return values: have %d, want %d",
							fewOrMany(len(n.Results), want.Len()), len(n.Results), want.Len()), codeNames[codeWrongResultCount]))
					}
					c.compareList(s, n.Results, want, false, false)
				}
			case *ast.CallExpr:
				c.compareCall(s, n)
			case *ast.ValueSpec:
				if len(n.Values) > 0 {
					c.countAssigned(s, n.Pos(), len(n.Names), n.Values)
				}
				if n.Type != nil && len(n.Values) == len(n.Names) {
					for _, value := range n.Values {
						c.compare(s, value, c.info.Types[n.Type].Type)
					}
				}
			case *ast.AssignStmt:
				c.countAssigned(s, n.Pos(), len(n.Lhs), n.Rhs)
				if n.Tok == token.ASSIGN && len(n.Lhs) == len(n.Rhs) {
					for i := range n.Lhs {
						c.compare(s, n.Rhs[i], c.info.Types[n.Lhs[i]].Type)
					}
				}
			}
			return true
		}
		ast.Inspect(file, visit)
	}
}

// countAssigned reports an assignment of another number of values than there are variables.
func (c *checker) countAssigned(s *source, pos token.Pos, variables int, values []ast.Expr) {
	if c.hidesCount(values, variables, true) {
		c.add(problemAt(s, pos, fmt.Sprintf("assignment mismatch: have %d values, want %d", len(values), variables),
			codeNames[codeWrongAssignCount]))
	}
}

// hidesCount reports whether the number of values is certainly not the one that is wanted, and the checker keeps
// silent about it since one of them is unknown. An unknown call may give any number of values, and with commaOk some
// other expressions two.
func (c *checker) hidesCount(values []ast.Expr, want int, commaOk bool) bool {
	if len(values) == want {
		return false
	}
	unknown := false
	for _, value := range values {
		t := c.info.Types[value].Type
		if c.said(value.Pos()) {
			return false
		}
		unknown = unknown || t == nil || isUnknown(t)
	}
	if !unknown || len(values) > 1 || want == 0 {
		return unknown
	}
	switch value := unparen(values[0]).(type) {
	case *ast.CallExpr:
		return false
	case *ast.IndexExpr, *ast.TypeAssertExpr:
		return !commaOk || want != 2
	case *ast.UnaryExpr:
		return !commaOk || want != 2 || value.Op != token.ARROW
	default:
		return true
	}
}

func unparen(expr ast.Expr) ast.Expr {
	for {
		paren, ok := expr.(*ast.ParenExpr)
		if !ok {
			return expr
		}
		expr = paren.X
	}
}

func fewOrMany(have, want int) string {
	if have < want {
		return "not enough"
	}
	return "too many"
}

func (c *checker) visitBody(body *ast.BlockStmt, sig *types.Signature, around *[]*types.Signature, visit func(ast.Node) bool) {
	*around = append(*around, sig)
	ast.Inspect(body, visit)
	*around = (*around)[:len(*around)-1]
}

func (c *checker) signature(name *ast.Ident) *types.Signature {
	if f, ok := c.info.Defs[name].(*types.Func); ok {
		sig, _ := f.Type().(*types.Signature)
		return sig
	}
	return nil
}

// compareCall compares arguments with parameters where the callee is known.
func (c *checker) compareCall(s *source, call *ast.CallExpr) {
	callee, ok := c.info.Types[call.Fun]
	if !ok || callee.IsType() || callee.IsBuiltin() || callee.Type == nil {
		return
	}
	sig, ok := callee.Type.Underlying().(*types.Signature)
	if !ok || sig.TypeParams().Len() > 0 {
		return
	}
	c.compareList(s, call.Args, sig.Params(), sig.Variadic(), call.Ellipsis.IsValid())
}

// compareList compares values with the variables that receive them.
func (c *checker) compareList(s *source, values []ast.Expr, want *types.Tuple, variadic, spread bool) {
	if len(values) == 1 && want.Len() != 1 {
		if _, single := values[0].(*ast.CallExpr); single && unknownOrTuple(c.info.Types[values[0]]) {
			return // any number of values
		}
	}
	unknown := false
	for _, value := range values {
		unknown = unknown || mentionsUnknown(c.info.Types[value].Type)
	}
	for i := 0; i < want.Len(); i++ {
		unknown = unknown || mentionsUnknown(want.At(i).Type())
	}
	if !unknown {
		return // nothing was hidden
	}
	if variadic && !spread && len(values) < want.Len()-1 || (!variadic || spread) && len(values) != want.Len() {
		return // the checker has said so
	}
	for i, value := range values {
		var t types.Type
		if variadic && !spread && i >= want.Len()-1 {
			if list, ok := want.At(want.Len() - 1).Type().(*types.Slice); ok {
				t = list.Elem()
			}
		} else {
			t = want.At(i).Type()
		}
		c.compare(s, value, t)
	}
}

// unknownOrTuple reports whether a call may give another number of values than one.
func unknownOrTuple(value types.TypeAndValue) bool {
	if _, tuple := value.Type.(*types.Tuple); tuple {
		return true
	}
	return value.Type == nil || isUnknown(value.Type)
}

// compare reports a value whose known part cannot be assigned to a variable of type want.
func (c *checker) compare(s *source, value ast.Expr, want types.Type) {
	got := c.info.Types[value]
	if got.Type == nil || want == nil || isUnknown(got.Type) || isUnknown(want) || got.IsNil() || got.IsType() {
		return
	}
	if method := c.hiddenLack(value, got.Type, want); method != "" {
		c.add(problemAt(s, value.Pos(), fmt.Sprintf("%s does not implement %s (missing method %s)",
			c.show(got.Type), c.show(want), method), codeNames[codeInvalidIfaceAssign]))
		return
	}
	if method, have, need := wrongMethod(got.Type, want); method != "" {
		c.add(problemAt(s, value.Pos(), fmt.Sprintf("%s does not implement %s (wrong type for method %s: have %s, want %s)",
			c.show(got.Type), c.show(want), method, c.show(have), c.show(need)), codeNames[codeInvalidIfaceAssign]))
		return
	}
	if !mentionsUnknown(got.Type) && !mentionsUnknown(want) {
		return
	}
	if types.IsInterface(want) {
		return
	}
	if _, tuple := got.Type.(*types.Tuple); !tuple && !maybeAssignable(got.Type, want) {
		c.add(problemAt(s, value.Pos(), fmt.Sprintf("cannot use value of type %s as %s", c.show(got.Type), c.show(want)), codeNames[codeIncompatibleAssign]))
	}
}

// show writes a type with package names, and unknown for what is not known.
func (c *checker) show(t types.Type) string {
	text := types.TypeString(t, func(pkg *types.Package) string {
		if pkg == c.pkg {
			return ""
		}
		return pkg.Name()
	})
	return strings.ReplaceAll(text, "invalid type", "unknown")
}

// hiddenLack returns the first method that the interface demands and t has not, where the checker has not said so: it
// keeps silent where it would have to show a type, or the signature of a like-named method, that is partly unknown.
// That t lacks the name is certain all the same, unless it embeds something unknown.
func (c *checker) hiddenLack(value ast.Expr, t, want types.Type) string {
	iface, ok := want.Underlying().(*types.Interface)
	_, param := want.(*types.TypeParam)
	_, tuple := t.(*types.Tuple)
	if !ok || param || tuple || types.IsInterface(t) || embedsUnknown(t, nil) || c.said(value.Pos()) {
		return ""
	}
	for i := 0; i < iface.NumMethods(); i++ {
		method := iface.Method(i)
		if obj, _, _ := types.LookupFieldOrMethod(t, false, method.Pkg(), method.Name()); obj == nil {
			return method.Name()
		}
	}
	return ""
}

// said reports whether the checker has an error about what starts at pos.
func (c *checker) said(pos token.Pos) bool {
	if c.starts == nil {
		c.starts = map[token.Pos]bool{}
		for i := range c.raw {
			start, _ := extent(&c.raw[i])
			c.starts[start] = true
		}
	}
	return c.starts[pos]
}

// wrongMethod returns the first method that t has with another signature than the interface demands, where
// the signatures are partly unknown and differ in the known part.
func wrongMethod(t, want types.Type) (name string, have, need types.Type) {
	iface, ok := want.Underlying().(*types.Interface)
	if !ok || types.IsInterface(t) {
		return "", nil, nil
	}
	for i := 0; i < iface.NumMethods(); i++ {
		method := iface.Method(i)
		obj, _, _ := types.LookupFieldOrMethod(t, false, method.Pkg(), method.Name())
		f, ok := obj.(*types.Func)
		if !ok || !mentionsUnknown(f.Type()) && !mentionsUnknown(method.Type()) {
			continue
		}
		if !maybeIdentical(f.Type(), method.Type()) {
			return method.Name(), f.Type(), method.Type()
		}
	}
	return "", nil, nil
}

func isUnknown(t types.Type) bool {
	basic, ok := unalias(t).(*types.Basic)
	return ok && basic.Kind() == types.Invalid
}

// mentionsUnknown reports whether the type, written out, shows an unknown type.
func mentionsUnknown(t types.Type) bool {
	switch t := t.(type) {
	case nil:
		return true
	case *types.Basic:
		return t.Kind() == types.Invalid
	case *types.Named:
		for i := 0; i < t.TypeArgs().Len(); i++ {
			if mentionsUnknown(t.TypeArgs().At(i)) {
				return true
			}
		}
	case *types.Pointer:
		return mentionsUnknown(t.Elem())
	case *types.Slice:
		return mentionsUnknown(t.Elem())
	case *types.Array:
		return mentionsUnknown(t.Elem())
	case *types.Chan:
		return mentionsUnknown(t.Elem())
	case *types.Map:
		return mentionsUnknown(t.Key()) || mentionsUnknown(t.Elem())
	case *types.Tuple:
		for i := 0; i < t.Len(); i++ {
			if mentionsUnknown(t.At(i).Type()) {
				return true
			}
		}
	case *types.Signature:
		return mentionsUnknown(t.Params()) || mentionsUnknown(t.Results())
	case *types.Struct:
		for i := 0; i < t.NumFields(); i++ {
			if mentionsUnknown(t.Field(i).Type()) {
				return true
			}
		}
	case *types.Interface:
		for i := 0; i < t.NumMethods(); i++ {
			if mentionsUnknown(t.Method(i).Type()) {
				return true
			}
		}
	default:
		if u := unalias(t); u != t {
			return mentionsUnknown(u)
		}
	}
	return false
}

// maybeAssignable reports whether a value of type v fits a variable of type t for some choice of the unknown.
func maybeAssignable(v, t types.Type) bool {
	v, t = unalias(v), unalias(t)
	if maybeIdentical(v, t) {
		return true
	}
	_, vNamed := v.(*types.Named)
	_, tNamed := t.(*types.Named)
	if vNamed && tNamed {
		return false
	}
	if from, ok := v.Underlying().(*types.Chan); ok && from.Dir() == types.SendRecv {
		if to, ok := t.Underlying().(*types.Chan); ok {
			return maybeIdentical(from.Elem(), to.Elem())
		}
	}
	if basic, ok := v.(*types.Basic); ok && basic.Info()&types.IsUntyped != 0 {
		return true // the checker has judged the constant
	}
	return maybeIdentical(v.Underlying(), t.Underlying())
}

// maybeIdentical reports whether two types are identical for some choice of their unknown parts.
func maybeIdentical(a, b types.Type) bool {
	a, b = unalias(a), unalias(b)
	if isUnknown(a) || isUnknown(b) || types.Identical(a, b) {
		return true
	}
	switch a := a.(type) {
	case *types.Named:
		b, ok := b.(*types.Named)
		if !ok || a.Origin().Obj() != b.Origin().Obj() || a.TypeArgs().Len() != b.TypeArgs().Len() {
			return false
		}
		for i := 0; i < a.TypeArgs().Len(); i++ {
			if !maybeIdentical(a.TypeArgs().At(i), b.TypeArgs().At(i)) {
				return false
			}
		}
		return true
	case *types.Pointer:
		b, ok := b.(*types.Pointer)
		return ok && maybeIdentical(a.Elem(), b.Elem())
	case *types.Slice:
		b, ok := b.(*types.Slice)
		return ok && maybeIdentical(a.Elem(), b.Elem())
	case *types.Array:
		b, ok := b.(*types.Array)
		return ok && (a.Len() == b.Len() || a.Len() < 0 || b.Len() < 0) && maybeIdentical(a.Elem(), b.Elem())
	case *types.Map:
		b, ok := b.(*types.Map)
		return ok && maybeIdentical(a.Key(), b.Key()) && maybeIdentical(a.Elem(), b.Elem())
	case *types.Chan:
		b, ok := b.(*types.Chan)
		return ok && a.Dir() == b.Dir() && maybeIdentical(a.Elem(), b.Elem())
	case *types.Tuple:
		b, ok := b.(*types.Tuple)
		if !ok || a.Len() != b.Len() {
			return false
		}
		for i := 0; i < a.Len(); i++ {
			if !maybeIdentical(a.At(i).Type(), b.At(i).Type()) {
				return false
			}
		}
		return true
	case *types.Signature:
		b, ok := b.(*types.Signature)
		return ok && a.Variadic() == b.Variadic() && maybeIdentical(a.Params(), b.Params()) && maybeIdentical(a.Results(), b.Results())
	case *types.Struct:
		b, ok := b.(*types.Struct)
		return ok && a.NumFields() == b.NumFields() // field by field would say little more
	case *types.Interface:
		_, ok := b.(*types.Interface)
		return ok
	}
	return false
}
