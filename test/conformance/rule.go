package conformance

import "strings"

// Rule is one thing that a standard, or a situation seen in the field, demands.
type Rule struct {
	ID     string
	Source string // the standard and its section
	Says   string // in our own words
	// Proof names the tests that show it, as "package.Test" or "package.Test/subtest"; see
	// places. "sipp.NAME" is a scenario of test/sipp/conformance, which wire.TestSIPp runs.
	Proof []string
	// NotBuilt says why there is no such behaviour. It may stand beside Proof, for what
	// is missing of a rule that is kept otherwise.
	NotBuilt string
}

// Group is a chapter of the document.
type Group struct {
	Title string
	Note  string // what one has to know of it; may be empty
	Rules []Rule
}

// places are the folders of the packages that proofs name.
func places() map[string]string {
	return map[string]string{
		"registrar": "registrar",
		"sipfront":  "registrar/sipfront",
		"bearer":    "internal/bearer",
		"frontend":  "internal/frontend",
		"sim":       "internal/sim",
		"system":    "test/system",
		"wire":      "test/conformance/wire",
		"sipp":      "test/sipp/conformance",
	}
}

// Groups are all rules. root is the folder of the module: some chapters are read from the tests themselves.
func Groups(root string) ([]Group, error) {
	groups := []Group{section103(), section102(), section82(), comparison(), digest(), outbound(), path(), gruu(), regEvent(), others(), situations(), flows()}
	for _, read := range []func(string) (Group, error){purposes, torture, tortureIPv6} {
		g, err := read(root)
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// rule is a Rule whose proofs are one string with " | " between them.
func rule(id, source, says, proof string) Rule {
	r := Rule{ID: id, Source: source, Says: says}
	if proof != "" {
		r.Proof = strings.Split(proof, " | ")
	}
	return r
}

// but adds what is missing, and why.
func (r Rule) but(why string) Rule {
	r.NotBuilt = why
	return r
}
