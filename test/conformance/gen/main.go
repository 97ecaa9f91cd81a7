// Command gen writes docs/CONFORMANCE.md: go generate ./test/conformance
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"rollcall/test/conformance"
	"rollcall/test/harness"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance document:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := harness.Root()
	if err != nil {
		return err
	}
	groups, err := conformance.Groups(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, conformance.Document), []byte(conformance.Render(groups)), 0o644)
}
