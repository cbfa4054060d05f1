package main

import (
	"crypto/sha256"
	"fmt"
	"go/types"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// apis keeps one package of every distinct API. Two packages with the same path whose importers cannot tell
// them apart are one, so that a change inside function bodies leaves all importers alone.
type apis struct {
	mu      sync.Mutex
	byPrint map[[sha256.Size]byte]*types.Package
	ids     map[*types.Package]int
	refers  map[*types.Package][]*types.Package
}

func newAPIs() *apis {
	return &apis{
		byPrint: map[[sha256.Size]byte]*types.Package{},
		ids:     map[*types.Package]int{},
		refers:  map[*types.Package][]*types.Package{},
	}
}

// canonical returns the package that stands for all with the same API. Objects that skip names are not part
// of it. Everything the package imports must be canonical.
func (a *apis) canonical(pkg *types.Package, skip func(types.Object) bool) *types.Package {
	printed, refers := a.print(pkg, skip)
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.byPrint[printed]; known != nil {
		return known
	}
	a.byPrint[printed] = pkg
	a.ids[pkg] = len(a.ids) + 1
	a.refers[pkg] = refers
	return pkg
}

// references returns the other packages whose types are part of the API of a canonical package.
func (a *apis) references(pkg *types.Package) []*types.Package {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refers[pkg]
}

// id returns the number of a canonical package, 0 for any other.
func (a *apis) id(pkg *types.Package) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ids[pkg]
}

// apiPrinter writes all that an importer can observe: exported objects and, with unexported parts, every type
// reachable from them. Types of other packages are named by the number of their canonical package.
type apiPrinter struct {
	strings.Builder
	apis   *apis
	pkg    *types.Package
	number map[*types.TypeName]int
	queue  []*types.TypeName
	others map[*types.Package]string
}

func (a *apis) print(pkg *types.Package, skip func(types.Object) bool) (printed [sha256.Size]byte, refers []*types.Package) {
	p := &apiPrinter{apis: a, pkg: pkg, number: map[*types.TypeName]int{}, others: map[*types.Package]string{}}
	p.words("package", pkg.Path(), pkg.Name())
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() || skip != nil && skip(obj) {
			continue
		}
		p.words("\n", name)
		switch obj := obj.(type) {
		case *types.Const:
			p.words("const", obj.Val().ExactString())
			p.typ(obj.Type())
		case *types.Var:
			p.words("var")
			p.typ(obj.Type())
		case *types.Func:
			p.words("func")
			p.typ(obj.Type())
		case *types.TypeName:
			p.words("type", strconv.FormatBool(obj.IsAlias()))
			p.typ(obj.Type())
		}
	}
	for len(p.queue) > 0 {
		next := p.queue[0]
		p.queue = p.queue[1:]
		p.define(next)
	}
	for other := range p.others {
		refers = append(refers, other)
	}
	return sha256.Sum256([]byte(p.String())), refers
}

func (p *apiPrinter) words(words ...string) {
	for _, word := range words {
		p.WriteString(word)
		p.WriteByte(' ')
	}
}

// define writes a named type of the package itself: constraints, underlying type and methods.
func (p *apiPrinter) define(name *types.TypeName) {
	p.words("\n#", strconv.Itoa(p.number[name]), name.Name())
	named, ok := name.Type().(*types.Named)
	if !ok {
		return
	}
	p.typeParams(named.TypeParams())
	p.typ(named.Underlying())
	methods := make([]*types.Func, named.NumMethods())
	for i := range methods {
		methods[i] = named.Method(i)
	}
	sort.Slice(methods, func(a, b int) bool { return methods[a].Name() < methods[b].Name() })
	for _, m := range methods {
		p.words("\nmethod", m.Name())
		sig := m.Type().(*types.Signature)
		_, pointer := sig.Recv().Type().(*types.Pointer)
		p.words(strconv.FormatBool(pointer))
		p.typ(sig)
	}
}

func (p *apiPrinter) typeParams(list *types.TypeParamList) {
	for i := 0; i < list.Len(); i++ {
		p.words("typeparam", list.At(i).Obj().Name())
		p.typ(list.At(i).Constraint())
	}
}

// typ writes a type; named types of the package are numbered and written later.
func (p *apiPrinter) typ(t types.Type) {
	switch t := unalias(t).(type) {
	case *types.Basic:
		p.words(t.String())
	case *types.Named:
		p.reference(t.Obj())
		for i := 0; i < t.TypeArgs().Len(); i++ {
			p.words("arg")
			p.typ(t.TypeArgs().At(i))
		}
	case *types.Pointer:
		p.words("*")
		p.typ(t.Elem())
	case *types.Slice:
		p.words("[]")
		p.typ(t.Elem())
	case *types.Array:
		p.words("array", strconv.FormatInt(t.Len(), 10))
		p.typ(t.Elem())
	case *types.Map:
		p.words("map")
		p.typ(t.Key())
		p.typ(t.Elem())
	case *types.Chan:
		p.words("chan", strconv.Itoa(int(t.Dir())))
		p.typ(t.Elem())
	case *types.Signature:
		p.words("func", strconv.FormatBool(t.Variadic()))
		p.typeParams(t.TypeParams())
		p.tuple(t.Params())
		p.tuple(t.Results())
	case *types.Struct:
		p.words("struct {")
		for i := 0; i < t.NumFields(); i++ {
			f := t.Field(i)
			p.words(f.Name(), strconv.FormatBool(f.Embedded()), strconv.Quote(t.Tag(i)))
			p.typ(f.Type())
		}
		p.words("}")
	case *types.Interface:
		p.words("interface {")
		for i := 0; i < t.NumExplicitMethods(); i++ {
			p.words(t.ExplicitMethod(i).Name())
			p.typ(t.ExplicitMethod(i).Type())
		}
		for i := 0; i < t.NumEmbeddeds(); i++ {
			p.words("embeds")
			p.typ(t.EmbeddedType(i))
		}
		p.words("}")
	case *types.Union:
		for i := 0; i < t.Len(); i++ {
			p.words("|", strconv.FormatBool(t.Term(i).Tilde()))
			p.typ(t.Term(i).Type())
		}
	case *types.TypeParam:
		p.words("$", t.Obj().Name(), strconv.Itoa(t.Index()))
	default:
		p.words(fmt.Sprintf("%T %s", t, t))
	}
}

func (p *apiPrinter) tuple(t *types.Tuple) {
	p.words("(")
	for i := 0; i < t.Len(); i++ {
		p.words(t.At(i).Name()) // names appear in messages
		p.typ(t.At(i).Type())
	}
	p.words(")")
}

func (p *apiPrinter) reference(name *types.TypeName) {
	switch pkg := name.Pkg(); pkg {
	case nil:
		p.words(name.Name())
	case p.pkg:
		number, seen := p.number[name]
		if !seen {
			number = len(p.number) + 1
			p.number[name] = number
			p.queue = append(p.queue, name)
		}
		p.words("#" + strconv.Itoa(number))
	default:
		other, seen := p.others[pkg]
		if !seen {
			other = "@" + strconv.Itoa(p.apis.id(pkg))
			p.others[pkg] = other
		}
		p.words(other, name.Name())
	}
}
