// Command verify type-checks the packages of one Go module from source, offline, for several build
// configurations and several states of the tree, and reports which errors each state adds.
//
// The examined tree arrives in a JSON request on standard input and the answer leaves as JSON on standard
// output. The program never opens a path of the tree, starts no process and writes no file: the only
// directory it reads is GOROOT/src. Packages outside the module are unknown and never the cause of an error.
//
// Exit status: 0 answered (the answer may hold errors), 1 unusable request, anything else a crash.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

func main() {
	// Built with an old language version in go.mod, the type checker would refuse generic aliases.
	os.Setenv("GODEBUG", "gotypesalias=1")
	debug.SetGCPercent(800)
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "verify: "+err.Error())
		os.Exit(1)
	}
}

// serve answers one request.
func serve(in io.Reader, out io.Writer) error {
	data, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("cannot read the request: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var req Request
	if err := decoder.Decode(&req); err != nil {
		return fmt.Errorf("the request is not the expected JSON: %w", err)
	}
	if err := req.complete(); err != nil {
		return err
	}
	debug.SetMemoryLimit(req.Limits.MemoryBytes)
	res, err := examine(&req)
	if err != nil {
		return err
	}
	writer := bufio.NewWriter(out)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(res); err != nil {
		return fmt.Errorf("cannot write the answer: %w", err)
	}
	return writer.Flush()
}
