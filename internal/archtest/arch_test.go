// Package archtest holds the rules of who may import what, as tests.
package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "rollcall"

// file is one Go file of the module and what it imports.
type file struct {
	path    string // from the root of the module
	dir     string
	test    bool
	doc     bool // it has a package comment
	name    string
	imports []string
}

func files(t *testing.T) (all []file) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n == "testdata" || n == "node_modules" || strings.HasPrefix(n, ".") && n != ".." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		one := file{path: rel, dir: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(rel, "_test.go"), doc: f.Doc != nil, name: f.Name.Name}
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			one.imports = append(one.imports, p)
		}
		all = append(all, one)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("only %d files found: the walk is wrong", len(all))
	}
	return all
}

func standard(path string) bool {
	return !strings.Contains(strings.SplitN(path, "/", 2)[0], ".") && !ours(path)
}
func ours(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// Packages that decide import next to nothing, and no clock comes in by another door.
func TestPurePackages(t *testing.T) {
	for dir, allowed := range map[string][]string{
		"routing":   {},                               // every Front End must plan the same, from the same input
		"registrar": {"github.com/fxamacker/cbor/v2"}, // decisions on a set, a request and a time that are given
		"bus":       {},                               // the interface; whoever implements it has the imports
	} {
		found := false
		for _, f := range files(t) {
			if f.dir != dir || f.test {
				continue
			}
			found = true
			for _, i := range f.imports {
				if !standard(i) && !slices.Contains(allowed, i) {
					t.Errorf("%s imports %s: %s stands on the standard library%s", f.path, i, dir, strings.Join(append([]string{""}, allowed...), " and "))
				}
				if i == "net" || i == "os" || i == "log/slog" || i == "math/rand" || i == "math/rand/v2" {
					t.Errorf("%s imports %s: %s does no I/O, does not log and draws no lots", f.path, i, dir)
				}
			}
		}
		if !found {
			t.Errorf("there is no package %s any more: change the rule", dir)
		}
	}
}

// Each outside thing has one adapter.
func TestAdapters(t *testing.T) {
	for _, rule := range []struct {
		imported string
		by       []string // folders, and those below
		why      string
	}{
		{"github.com/nats-io/", []string{"bus/natsbus"}, "NATS is behind the bus"},
		{"github.com/emiago/sipgo", []string{"registrar/sipfront", "loadtest", "test"}, "SIP messages are taken apart in one place"},
		{"github.com/spf13/cobra", []string{"cmd/rollcall", "loadtest/cli"}, "the command line is at the rim"},
		{"github.com/goccy/go-yaml", []string{"internal/config", "loadtest"}, "YAML is read at the rim"},
		{"github.com/golang-jwt/", []string{"internal/bearer"}, "tokens are checked in one place"},
		{module + "/bus/natsbus", []string{"bus", "cmd/rollcall", "internal/supervisor"}, "which bus it is, the assembly decides"},
		{module + "/internal/frontend", []string{"internal/frontend", "internal/sim", "cmd/rollcall"}, "nobody reaches into a Front End"},
	} {
		for _, f := range files(t) {
			for _, i := range f.imports {
				if !strings.HasPrefix(i, rule.imported) || f.test {
					continue
				}
				if !slices.ContainsFunc(rule.by, func(dir string) bool { return f.dir == dir || strings.HasPrefix(f.dir, dir+"/") }) {
					t.Errorf("%s imports %s: only %s may, because %s", f.path, i, strings.Join(rule.by, ", "), rule.why)
				}
			}
		}
	}
}

// Every package says once what it decides or does.
func TestPackageComments(t *testing.T) {
	comments, packages := map[string]int{}, map[string]bool{}
	for _, f := range files(t) {
		if f.test {
			continue
		}
		packages[f.dir] = true
		if f.doc && !strings.Contains(f.path, "_linux") {
			comments[f.dir]++
		}
	}
	for dir := range packages {
		if comments[dir] != 1 {
			t.Errorf("%s has %d package comments, want one", dir, comments[dir])
		}
	}
}
