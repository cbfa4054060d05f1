package main

import (
	"crypto/sha256"
	"fmt"
	"go/token"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"time"
)

// examine answers a request.
func examine(req *Request) (*Response, error) {
	clock := newClock()
	fset := token.NewFileSet()
	apis := newAPIs()
	known, err := loadKnown(req.Known, fset, apis)
	if err != nil {
		return nil, err
	}
	sources := loadSources(req, fset)
	clock.lap("parse")

	systems := map[string]*standard{}
	library := &stdFiles{files: map[string]*stdFile{}, made: map[string]*stdPackage{}}
	for i := range req.Configs {
		if key := req.Configs[i].GOOS + "/" + req.Configs[i].GOARCH; systems[key] == nil {
			systems[key] = newStandard(req.GOROOT, &req.Configs[i], fset, library, apis)
		}
	}
	modules := readModules(req, sources)
	var views []*view
	for _, m := range modules {
		for i := range req.Configs {
			views = append(views, newView(m, i, systems[req.Configs[i].GOOS+"/"+req.Configs[i].GOARCH], known))
		}
	}
	nameOutside(views, sources)
	s := &schedule{req: req, fset: fset, apis: apis, memo: map[[sha256.Size]byte]*unit{}}
	s.cond = sync.NewCond(&s.mu)
	for _, v := range views {
		s.add(plan(v, req.reportOnly))
	}
	if err := unknownPackages(req, views); err != nil {
		return nil, err
	}
	clock.lap("plan")
	stopped := s.run()
	clock.lap("check")

	s.mu.Lock() // for good: workers that are still busy after a stop must not touch what is read now
	res := &Response{Schema: schema, Go: runtime.Version(), Std: "source", Stopped: stopped, Trees: []TreeNote{}, Runs: []Run{}, Pairs: []Pair{}}
	if !systems[req.Configs[0].GOOS+"/"+req.Configs[0].GOARCH].available {
		res.Std = "unknown: no source of the standard library in " + req.GOROOT
	}
	for _, m := range modules {
		res.Trees = append(res.Trees, m.note)
	}
	byView := map[*view][]*node{}
	for _, n := range s.nodes {
		byView[n.view] = append(byView[n.view], n)
	}
	for _, v := range views {
		res.Runs = append(res.Runs, summarize(v, byView[v], req, stopped))
	}
	for i := len(req.Configs); i < len(res.Runs); i++ {
		res.Pairs = append(res.Pairs, comparePair(&res.Runs[i-len(req.Configs)], &res.Runs[i]))
	}
	clock.lap("compare")
	res.Stats = Stats{Files: len(sources), Packages: s.packages, Checked: s.checked, Shared: s.shared, MS: clock.ms()}
	for _, system := range systems {
		res.Stats.Std += int(system.loaded.Load())
	}
	return res, nil
}

// unknownPackages refuses a request for packages that no tree has.
func unknownPackages(req *Request, views []*view) error {
	var missing []string
	for p := range req.reportOnly {
		found := false
		for _, v := range views {
			found = found || v.packages[p] != nil
		}
		if !found {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	sort.Strings(missing)
	return fmt.Errorf("no tree has a package %s", strings.Join(missing, ", "))
}

// schedule checks nodes, importers after what they import, each distinct one once.
type schedule struct {
	req   *Request
	fset  *token.FileSet
	apis  *apis
	nodes []*node

	mu      sync.Mutex
	cond    *sync.Cond
	ready   []*node
	open    int // wanted nodes without a result
	stopped string
	memo    map[[sha256.Size]byte]*unit

	packages, checked, shared int
}

// add takes the nodes of one view.
func (s *schedule) add(nodes []*node) {
	for _, n := range nodes {
		if !n.wanted {
			continue
		}
		s.nodes = append(s.nodes, n)
		n.index = len(s.nodes)
		imports := map[*node]bool{}
		for _, t := range n.targets {
			if t.node != nil {
				imports[t.node] = true
			}
		}
		if n.base != nil {
			imports[n.base] = true
		}
		n.waiting = len(imports)
		for imported := range imports {
			imported.users = append(imported.users, n)
		}
	}
}

// run returns when every node has a result or a limit stopped the run, and says which.
func (s *schedule) run() string {
	s.open = len(s.nodes)
	s.packages = len(s.nodes)
	for _, n := range s.nodes {
		if n.waiting == 0 {
			s.ready = append(s.ready, n)
		}
	}
	finished := make(chan struct{})
	go func() {
		var group sync.WaitGroup
		for w := 0; w < s.req.Workers; w++ {
			group.Add(1)
			go func() {
				defer group.Done()
				s.work()
			}()
		}
		group.Wait()
		close(finished)
	}()
	deadline := time.After(time.Duration(s.req.Limits.TimeoutMS) * time.Millisecond)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-finished:
			return ""
		case <-deadline:
			return s.stop(fmt.Sprintf("stopped after %d ms", s.req.Limits.TimeoutMS))
		case <-tick.C:
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			if int64(memory.HeapAlloc) > s.req.Limits.MemoryBytes {
				debug.SetGCPercent(50)
				return s.stop(fmt.Sprintf("stopped at %d bytes of memory", s.req.Limits.MemoryBytes))
			}
		}
	}
}

func (s *schedule) stop(reason string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = reason
	s.cond.Broadcast()
	return reason
}

// work takes ready nodes until none is left to wait for.
func (s *schedule) work() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.ready) == 0 && s.open > 0 && s.stopped == "" {
			s.cond.Wait()
		}
		if s.open == 0 || s.stopped != "" {
			return
		}
		n := s.ready[0]
		s.ready = s.ready[1:]
		s.mu.Unlock()
		full := s.key(n, false)
		key := full
		if n.kind == variantNode {
			key = s.key(n, true)
		}
		s.mu.Lock()
		if u := s.memo[full]; u != nil {
			key = full // a variant that reads the same as its lib
		}
		u := s.memo[key]
		switch {
		case u == nil:
			u = &unit{}
			s.memo[key] = u
			s.checked++
			s.mu.Unlock()
			result := check(n, s.fset, &s.req.Limits, s.apis, n.kind != variantNode)
			s.mu.Lock()
			if s.stopped != "" {
				return
			}
			waiters := append(u.waiters, n)
			*u = *result
			u.done = true
			for _, waiter := range waiters {
				s.finish(waiter, u)
			}
		case u.done:
			s.shared++
			s.finish(n, u)
		default:
			s.shared++
			u.waiters = append(u.waiters, n)
		}
	}
}

// finish gives a node its result and frees its importers.
func (s *schedule) finish(n *node, u *unit) {
	n.unit = u
	s.open--
	for _, user := range n.users {
		if user.waiting--; user.waiting == 0 {
			s.ready = append(s.ready, user)
		}
	}
	s.cond.Broadcast()
}

// key identifies all that the result of a node depends on.
func (s *schedule) key(n *node, signaturesOnly bool) [sha256.Size]byte {
	var text strings.Builder
	kind := n.kind
	if kind == variantNode && !signaturesOnly {
		kind = libNode
	}
	fmt.Fprintf(&text, "%d %s %s %s\n", kind, n.path, n.view.language, n.view.std.ctx.GOARCH)
	for _, file := range n.files {
		fmt.Fprintf(&text, "%s %s\n", file.path, file.blob)
	}
	paths := make([]string, 0, len(n.targets))
	for path := range n.targets {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for _, path := range paths {
		id := 0
		if pkg, err := n.imported(path); err == nil {
			id = s.apis.id(pkg)
		}
		fmt.Fprintf(&text, "%s %d %d\n", path, n.targets[path].kind, id)
	}
	return sha256.Sum256([]byte(text.String()))
}

// summarize collects what the nodes of a view have found.
func summarize(v *view, nodes []*node, req *Request, stopped string) Run {
	run := Run{Tree: v.tree.Name, Config: req.Configs[v.config].Name, Errors: []Problem{}, NotVerified: []NotVerified{}}
	paths := map[string]bool{}
	seen := map[Problem]bool{}
	for _, n := range nodes { // libs come before tests
		if !n.reported {
			continue
		}
		paths[n.path] = true
		if n.unit == nil {
			run.NotVerified = append(run.NotVerified, NotVerified{Package: n.name(), Reason: stopped})
			continue
		}
		if n.unit.reason != "" {
			run.NotVerified = append(run.NotVerified, NotVerified{Package: n.name(), Reason: n.unit.reason})
		}
		for _, list := range [][]Problem{n.unit.problems, n.problems} {
			for _, problem := range list {
				if !seen[problem] {
					seen[problem] = true
					problem.Package = n.name()
					run.Errors = append(run.Errors, problem)
				}
			}
		}
	}
	run.Packages = len(paths)
	sort.SliceStable(run.Errors, func(a, b int) bool { return run.Errors[a].Package < run.Errors[b].Package })
	sortProblems(run.Errors)
	sortNotVerified(run.NotVerified)
	return run
}

// clock measures the stages of a run.
type clock struct {
	start, last time.Time
	laps        map[string]int64
}

func newClock() *clock {
	now := time.Now()
	return &clock{start: now, last: now, laps: map[string]int64{}}
}

func (c *clock) lap(name string) {
	now := time.Now()
	c.laps[name] = now.Sub(c.last).Milliseconds()
	c.last = now
}

func (c *clock) ms() map[string]int64 {
	c.laps["total"] = time.Since(c.start).Milliseconds()
	return c.laps
}
