package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
)

// knownDeclarations are outside packages whose whole API is small, frozen and worth knowing: an error helper
// that is given something else than an error is the commonest mark of a half-changed call. Types written as
// unknown.T stay unknown.
var knownDeclarations = map[string]string{
	"github.com/pkg/errors": `package errors
import "unknown"
type Frame = unknown.T
type StackTrace = unknown.T
func As(err error, target interface{}) bool
func Cause(err error) error
func Errorf(format string, args ...interface{}) error
func Is(err, target error) bool
func New(message string) error
func Unwrap(err error) error
func WithMessage(err error, message string) error
func WithMessagef(err error, format string, args ...interface{}) error
func WithStack(err error) error
func Wrap(err error, message string) error
func Wrapf(err error, format string, args ...interface{}) error
`,
}

// knownPackages are the outside packages that are not unknown.
type knownPackages struct{ packages map[string]*types.Package }

// loadKnown checks the built-in declarations and those of the request, which win.
func loadKnown(declarations map[string]string, fset *token.FileSet, apis *apis) (*knownPackages, error) {
	k := &knownPackages{packages: map[string]*types.Package{}}
	all := map[string]string{}
	for path, text := range knownDeclarations {
		all[path] = text
	}
	for path, text := range declarations {
		all[path] = text
	}
	for path, text := range all {
		file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("known declarations of %s: %w", path, err)
		}
		conf := types.Config{Importer: k, IgnoreFuncBodies: true, Error: func(error) {}}
		pkg, _ := conf.Check(path, fset, []*ast.File{file}, nil) // what it imports is unknown
		k.packages[path] = apis.canonical(pkg, nil)
	}
	return k, nil
}

func (k *knownPackages) has(path string) bool { return k.packages[path] != nil }

// Import implements types.Importer for those who may use a known package; for its own imports nothing is known.
func (k *knownPackages) Import(path string) (*types.Package, error) {
	if pkg := k.packages[path]; pkg != nil {
		return pkg, nil
	}
	return nil, errors.New("unknown package")
}
