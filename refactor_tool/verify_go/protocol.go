package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// schema names the shape of the answer.
const schema = "refactor-tool-types/1"

// Request is everything the program may know about the tree under examination.
type Request struct {
	Module     string            `json:"module"`       // module path of the tree, as in its go.mod
	GOROOT     string            `json:"goroot"`       // where src/ of the standard library is
	Configs    []Config          `json:"configs"`      // build configurations, each checked in every tree
	Trees      []Tree            `json:"trees"`        // states in order; errors are compared between neighbours
	Blobs      map[string]string `json:"blobs"`        // blob id to UTF-8 text
	BlobsB64   map[string]string `json:"blobs_base64"` // blob id to base64, for blobs that are not UTF-8
	Packages   []string          `json:"packages"`     // import paths or folders to report on; empty: all
	Known      map[string]string `json:"known"`        // outside import path to declarations in Go that replace the unknown
	Limits     Limits            `json:"limits"`
	Workers    int               `json:"workers"`  // goroutines that check; default 2
	NoTests    bool              `json:"no_tests"` // leave _test.go files out
	contents   map[string]string // blob id to bytes
	reportOnly map[string]bool   // import paths of Packages; nil: all
}

// Config is one build configuration.
type Config struct {
	Name   string   `json:"name"`
	GOOS   string   `json:"goos"`
	GOARCH string   `json:"goarch"`
	Tags   []string `json:"tags"`
	NoCgo  bool     `json:"no_cgo"` // as CGO_ENABLED=0
}

// Tree is one state of the module: repository path to blob id.
type Tree struct {
	Name  string            `json:"name"`
	Files map[string]string `json:"files"`
}

// Limits keep a hostile tree from hanging or filling the machine; zero takes the default.
type Limits struct {
	FileBytes     int   `json:"file_bytes"`     // larger files are not verified; default 4 MiB
	Depth         int   `json:"depth"`          // deeper syntax trees are not verified; default 5000
	PackageErrors int   `json:"package_errors"` // errors kept for one package; default 500
	TimeoutMS     int   `json:"timeout_ms"`     // what is not done by then is not verified; default 60000
	MemoryBytes   int64 `json:"memory_bytes"`   // heap at which the run stops likewise; default 3 GiB
}

// Problem is one error with its place. Line and column are 1-based, the column in bytes.
type Problem struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Package string `json:"package"`
	Code    string `json:"code"`
	Decl    string `json:"decl"` // enclosing top-level declaration: run, (*T).M, type T, import
	text    string // the source line, to pair errors across trees
}

// NotVerified says what was not checked and why.
type NotVerified struct {
	Package string `json:"package"`
	Path    string `json:"path,omitempty"`
	Reason  string `json:"reason"`
}

// Run is the result for one tree in one configuration.
type Run struct {
	Tree        string        `json:"tree"`
	Config      string        `json:"config"`
	Packages    int           `json:"packages"` // import paths reported on, checked or not
	Errors      []Problem     `json:"errors"`
	NotVerified []NotVerified `json:"not_verified"`
}

// Pair compares two neighbouring trees in one configuration.
type Pair struct {
	Before           string        `json:"before"`
	After            string        `json:"after"`
	Config           string        `json:"config"`
	New              []Problem     `json:"new"`
	Gone             []Problem     `json:"gone"`
	NewlyNotVerified []NotVerified `json:"newly_not_verified"`
}

// TreeNote lists what no configuration looks at.
type TreeNote struct {
	Name        string        `json:"name"`
	Language    string        `json:"language"` // Go version the packages are held to; empty: the toolchain's
	NotVerified []NotVerified `json:"not_verified"`
}

// Stats counts work and time.
type Stats struct {
	Files    int              `json:"files"`    // distinct Go files parsed
	Packages int              `json:"packages"` // package variants over all trees and configurations
	Checked  int              `json:"checked"`  // of these, type-checked
	Shared   int              `json:"shared"`   // of these, answered by an equal one
	Std      int              `json:"std"`      // standard packages loaded, each system counted
	MS       map[string]int64 `json:"ms"`
}

// Response is the answer.
type Response struct {
	Schema  string     `json:"schema"`
	Go      string     `json:"go"`
	Std     string     `json:"std"`     // "source", or why the standard library is unknown as well
	Stopped string     `json:"stopped"` // why the run ended early; empty if it did not
	Trees   []TreeNote `json:"trees"`
	Runs    []Run      `json:"runs"`
	Pairs   []Pair     `json:"pairs"`
	Stats   Stats      `json:"stats"`
}

// complete checks the request and fills in the defaults.
func (r *Request) complete() error {
	if r.Module == "" || r.GOROOT == "" {
		return errors.New("request without module or goroot")
	}
	if len(r.Configs) == 0 || len(r.Trees) == 0 {
		return errors.New("request without configs or trees")
	}
	names := map[string]bool{}
	for _, c := range r.Configs {
		if c.Name == "" || c.GOOS == "" || c.GOARCH == "" || names[c.Name] {
			return fmt.Errorf("config %q: needs a name of its own, goos and goarch", c.Name)
		}
		names[c.Name] = true
	}
	r.contents = make(map[string]string, len(r.Blobs)+len(r.BlobsB64))
	for id, text := range r.Blobs {
		r.contents[id] = text
	}
	for id, encoded := range r.BlobsB64 {
		data, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return fmt.Errorf("blob %s: %w", id, err)
		}
		r.contents[id] = string(data)
	}
	names = map[string]bool{}
	for _, tree := range r.Trees {
		if tree.Name == "" || names[tree.Name] {
			return fmt.Errorf("tree %q: needs a name of its own", tree.Name)
		}
		names[tree.Name] = true
		for path, id := range tree.Files {
			if _, ok := r.contents[id]; !ok && examined(path) {
				return fmt.Errorf("tree %s: %s: blob %s is missing", tree.Name, path, id)
			}
		}
	}
	if len(r.Packages) > 0 {
		r.reportOnly = map[string]bool{}
		for _, p := range r.Packages {
			if p != r.Module && !strings.HasPrefix(p, r.Module+"/") {
				p = importPath(r.Module, strings.Trim(strings.TrimPrefix(p, "./"), "/."))
			}
			r.reportOnly[p] = true
		}
	}
	setDefault(&r.Limits.FileBytes, 4<<20)
	setDefault(&r.Limits.Depth, 5000)
	setDefault(&r.Limits.PackageErrors, 500)
	setDefault(&r.Limits.TimeoutMS, 60_000)
	setDefault(&r.Limits.MemoryBytes, 3<<30)
	setDefault(&r.Workers, 2)
	return nil
}

func setDefault[T int | int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// examined reports whether the program looks into files of this name.
func examined(path string) bool {
	return strings.HasSuffix(path, ".go") || path == "go.mod" || strings.HasSuffix(path, "/go.mod")
}

// importPath joins the module path and a folder of the repository ("" for its root).
func importPath(module, dir string) string {
	if dir == "" {
		return module
	}
	return module + "/" + dir
}
