package conformance

import (
	"fmt"
	"strings"
)

// Document is where Render's result belongs, below the module's folder.
const Document = "docs/CONFORMANCE.md"

const preface = `# Conformance

<!-- Made by "go generate ./test/conformance" from the rules and tests there; don't edit. -->

What the standards ask of a registrar, in our own words, and the test that proves each point. The tests of
` + "`test/conformance`" + ` fail when a test that is named here does not exist, when a rule has none, and when this page is
not what the rules say.

| package | kind of test | folder |
|---|---|---|
| registrar | the pure decision | ` + "`registrar`" + ` |
| sipfront | messages and sockets of one Front End | ` + "`registrar/sipfront`" + ` |
| bearer | tokens | ` + "`internal/bearer`" + ` |
| frontend | several Front Ends in one process, over a real bus | ` + "`internal/frontend`" + ` |
| sim | whole pools in virtual time, with faults | ` + "`internal/sim`" + ` |
| system | pools of real processes, killed and stopped | ` + "`test/system`" + ` |
| wire | a pool of real processes with authentication on, by sockets that say anything | ` + "`test/conformance/wire`" + ` |
| sipp | SIPp scenarios against the same pool, run by wire.TestSIPp | ` + "`test/sipp/conformance`" + ` |

Each test of wire and sipp runs over UDP and TCP (those of streams over TCP, those of datagrams over UDP), at a Front End that is
the user's primary, at one that is not, and through the address that the pool shares.
`

// Render writes the document.
func Render(groups []Group) string {
	var b strings.Builder
	b.WriteString(preface)
	rules, open, partly := 0, 0, 0
	for _, g := range groups {
		for _, r := range g.Rules {
			rules++
			switch {
			case r.NotBuilt != "" && len(r.Proof) == 0:
				open++
			case r.NotBuilt != "":
				partly++
			}
		}
	}
	fmt.Fprintf(&b, "\n%d rules: %d proven, %d proven but for what they say, %d not built.\n", rules, rules-open-partly, partly, open)
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n", g.Title)
		if g.Note != "" {
			b.WriteString(g.Note + "\n\n")
		}
		b.WriteString("| rule | source | what it says | proof |\n|---|---|---|---|\n")
		for _, r := range g.Rules {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.ID, r.Source, cell(r.Says), proof(r))
		}
	}
	return b.String()
}

func proof(r Rule) string {
	var parts []string
	for _, p := range r.Proof {
		parts = append(parts, "`"+cell(p)+"`")
	}
	if r.NotBuilt != "" && len(r.Proof) == 0 {
		parts = append(parts, "**Not built:** "+cell(r.NotBuilt))
	} else if r.NotBuilt != "" {
		parts = append(parts, "**But:** "+cell(r.NotBuilt))
	}
	return strings.Join(parts, "<br>")
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
