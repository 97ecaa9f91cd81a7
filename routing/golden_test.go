package routing

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt; commit it only if you understand the difference")

// TestGolden runs the scripts in testdata. A script is comments (#) and commands
// (>), each followed by what it prints: the moves with their reasons, then the placement.
//
//	> form fe1 fe2/zoneA groups=3    a new pool; "expect" the Front Ends in zones
//	> fail|return|restart|drain|join|remove|add fe1 …
//	> rebalance
//
// After every command the placement is checked, and planning again must change nothing.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// runScript returns the script with the output of its commands as it is now.
func runScript(t *testing.T, script string) string {
	var out strings.Builder
	pool := &scriptPool{members: map[FrontEnd]Member{}}
	for lines := bufio.NewScanner(strings.NewReader(script)); lines.Scan(); {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "#"):
			fmt.Fprintln(&out, line)
		case strings.HasPrefix(line, "> "):
			fmt.Fprintln(&out, line)
			out.WriteString(pool.run(t, strings.Fields(line[2:])))
			fmt.Fprintln(&out)
		}
	}
	return out.String()
}

type scriptPool struct {
	placement Placement
	members   map[FrontEnd]Member
	boots     int
}

func (s *scriptPool) list() []Member {
	var list []Member
	for _, m := range s.members {
		list = append(list, m)
	}
	return list
}

func (s *scriptPool) run(t *testing.T, words []string) string {
	t.Helper()
	for _, word := range words[1:] {
		if n, ok := strings.CutPrefix(word, "groups="); ok {
			count, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			s.placement = NewPlacement(GroupNames(count))
			continue
		}
		s.change(t, words[0], word)
	}
	plan := PlanFor(s.placement, s.list())
	if words[0] == "rebalance" {
		plan = Rebalance(s.placement, s.list())
	}
	plan.Next.Epoch++
	if err := plan.Next.Check(); err != nil {
		t.Errorf("%v: %v", words, err)
	}
	if again := PlanFor(plan.Next, s.list()); !again.Empty() {
		t.Errorf("%v: planning again moves %v", words, again.Moves)
	}
	s.placement = plan.Next

	const few = 12 // groups that are drawn one by one
	var out strings.Builder
	if len(plan.Next.Groups) > few {
		fmt.Fprintf(&out, "%d groups move, %d new copies\n%s", len(plan.Moves), built(plan), plan.Next.Summary())
		return out.String()
	}
	for _, m := range plan.Moves {
		fmt.Fprintf(&out, "%s: %s\n", m.Group, m.Why)
	}
	out.WriteString(plan.Next.Describe())
	return out.String()
}

func (s *scriptPool) change(t *testing.T, verb, word string) {
	t.Helper()
	name, zone, _ := strings.Cut(word, "/")
	m, known := s.members[FrontEnd(name)]
	if known == (verb == "form" || verb == "add") {
		t.Fatalf("%s %s: known: %v", verb, word, known)
	}
	switch verb {
	case "form", "add":
		m = Member{Name: FrontEnd(name), Zone: zone}
		fallthrough
	case "return", "restart":
		s.boots++
		m.State, m.Boot = Up, fmt.Sprintf("boot%d", s.boots)
	case "fail":
		m.State = Down
	case "drain":
		m.State = Draining
	case "join":
		m.State = Joining
	case "remove":
		delete(s.members, m.Name)
		return
	default:
		t.Fatalf("unknown command %q", verb)
	}
	s.members[m.Name] = m
}

// built counts the copies that a plan makes anew.
func built(p Plan) (n int) {
	for _, m := range p.Moves {
		for _, fe := range m.To.List() {
			if !slices.Contains(m.From.List(), fe) {
				n++
			}
		}
	}
	return n
}
