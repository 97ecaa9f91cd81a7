package conformance

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rollcall/test/harness"
)

func load(t *testing.T) (string, []Group) {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	groups, err := Groups(root)
	if err != nil {
		t.Fatal(err)
	}
	return root, groups
}

// tests are what a package's test files have: its Test functions, and every string in
// them, among which the names of subtests must be.
type tests struct {
	funcs   map[string]bool
	strings map[string]bool
}

func read(dir string) (tests, error) {
	ts := tests{map[string]bool{}, map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		return ts, fmt.Errorf("no tests in %s: %v", dir, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return ts, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && strings.HasPrefix(n.Name.Name, "Test") && n.Name.Name != "TestMain" {
					ts.funcs[n.Name.Name] = true
				}
			case *ast.BasicLit:
				if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					ts.strings[s] = true
				}
			}
			return true
		})
	}
	return ts, nil
}

// has says whether there is a test Name or Name/subtest. The subtest is one string
// of the package, slashes and all, or several nested ones.
func (ts tests) has(name string) bool {
	f, sub, nested := strings.Cut(name, "/")
	if !ts.funcs[f] {
		return false
	}
	if !nested || ts.strings[sub] {
		return true
	}
	for part := range strings.SplitSeq(sub, "/") {
		if !ts.strings[part] {
			return false
		}
	}
	return true
}

// Every rule has a test or says why not, and every test that a rule names exists.
func TestRulesHaveTests(t *testing.T) {
	root, groups := load(t)
	packages := map[string]tests{}
	for place, dir := range places() {
		if place == "sipp" {
			continue
		}
		ts, err := read(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		packages[place] = ts
	}
	for _, g := range groups {
		seen := map[string]bool{}
		for _, r := range g.Rules {
			if seen[r.ID] || r.Says == "" || r.Source == "" {
				t.Errorf("%s, %s: twice, or without words", g.Title, r.ID)
			}
			seen[r.ID] = true
			if len(r.Proof) == 0 && r.NotBuilt == "" {
				t.Errorf("%s, %s: no test", g.Title, r.ID)
			}
			for _, p := range r.Proof {
				place, name, _ := strings.Cut(p, ".")
				if place == "sipp" {
					if _, err := os.Stat(filepath.Join(root, places()["sipp"], name+".xml")); err != nil {
						t.Errorf("%s, %s: %v", g.Title, r.ID, err)
					}
				} else if !packages[place].has(name) {
					t.Errorf("%s, %s: there is no %s", g.Title, r.ID, p)
				}
			}
		}
	}
	for _, wrong := range []string{"TestNoSuchTest", "TestSection10_3/no such step", "TestSection10_3/step 7: expiry/no such"} {
		if packages["registrar"].has(wrong) {
			t.Errorf("%s counts as a test", wrong)
		}
	}
}

// The lists that are to be complete are: the situations, the purposes, the torture messages, the scenarios.
func TestListsAreComplete(t *testing.T) {
	root, groups := load(t)
	var ids []string
	used := map[string]bool{}
	for _, g := range groups {
		for _, r := range g.Rules {
			ids = append(ids, r.ID)
			for _, p := range r.Proof {
				used[p] = true
			}
		}
	}
	var want []string
	for n := range 48 {
		want = append(want, strconv.Itoa(n+1))
	}
	for kind, n := range map[string]int{"V": 22, "I": 4, "O": 3} {
		for i := range n {
			want = append(want, fmt.Sprintf("SIP_RG_RR_%s_%03d", kind, i+1))
		}
	}
	for n := range 5 {
		want = append(want, fmt.Sprintf("3665-2.%d", n+1))
	}
	for n := range 8 {
		step := fmt.Sprintf("10.3-%d", n+1)
		if !slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, step) }) {
			t.Errorf("no rule of step %d", n+1)
		}
	}
	for _, id := range want {
		if !slices.Contains(ids, id) {
			t.Errorf("no rule %s", id)
		}
	}
	scenarios, err := filepath.Glob(filepath.Join(root, places()["sipp"], "*.xml"))
	if err != nil || len(scenarios) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, s := range scenarios {
		if name := "sipp." + strings.TrimSuffix(filepath.Base(s), ".xml"); !used[name] {
			t.Errorf("%s proves no rule", name)
		}
	}
}

// The document is what the rules say.
func TestDocumentIsUpToDate(t *testing.T) {
	root, groups := load(t)
	got, err := os.ReadFile(filepath.Join(root, Document))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != Render(groups) {
		t.Errorf("%s is not up to date; run go generate ./test/conformance", Document)
	}
}
