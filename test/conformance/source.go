package conformance

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// What this file makes are chapters that are read from the source of the tests,
// where the data and the words already are.

// purposes are ETSI's, one for each TestSIP_RG_RR_… with its doc comment.
func purposes(root string) (Group, error) {
	g := Group{
		Title: "ETSI TS 102 027-2: purposes of the registrar",
		Note: "The standard's text was not at hand when the tests were written. The identifiers are its own, and together the tests cover " +
			"the areas that it names for the registrar; which purpose has which number is our ordering and may differ.",
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, places()["wire"], "etsi_test.go"), nil, parser.ParseComments)
	if err != nil {
		return g, err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(f.Name.Name, "TestSIP_RG_RR_") {
			continue
		}
		id := strings.TrimPrefix(f.Name.Name, "Test")
		says := strings.Join(strings.Fields(f.Doc.Text()), " ")
		if says == "" {
			return g, fmt.Errorf("%s has no comment that says what it shows", f.Name.Name)
		}
		g.Rules = append(g.Rules, rule(id, "ETSI TS 102 027-2", says, "wire."+f.Name.Name))
	}
	return g, nil
}

// torture is the table of RFC 4475's messages and what they deserve.
func torture(root string) (Group, error) {
	g := Group{
		Title: "RFC 4475: torture messages",
		Note:  "All 49 messages and one more that the sipgo module carries. The answer is a registrar's; the classification is ours.",
	}
	table, err := literal(filepath.Join(root, places()["sipfront"], "torture_test.go"), "tortureAnswers")
	if err != nil {
		return g, err
	}
	for _, e := range table.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return g, fmt.Errorf("tortureAnswers: an element without a key")
		}
		name, err := text(kv.Key)
		if err != nil {
			return g, err
		}
		answer := kv.Value.(*ast.CompositeLit)
		why, err := text(answer.Elts[1])
		if err != nil {
			return g, err
		}
		section, reason, _ := strings.Cut(why, " ")
		if !strings.HasPrefix(section, "§") {
			section, reason = "", why
		}
		g.Rules = append(g.Rules, rule(filepath.Base(name), strings.TrimSpace("RFC 4475 "+section), deserved(answer.Elts[0], reason), "sipfront.TestTorture/"+name))
	}
	return g, nil
}

// tortureIPv6 is the table of RFC 5118's.
func tortureIPv6(root string) (Group, error) {
	g := Group{
		Title: "RFC 5118: IPv6 torture messages",
		Note: "The RFC prints a wrong Content-Length with three of its bodies. As printed, 4.6 is a datagram that is too short; " +
			"4.8 and 4.9 have more bytes than they say, which a datagram may.",
	}
	table, err := literal(filepath.Join(root, places()["sipfront"], "rfc5118_test.go"), "rfc5118")
	if err != nil {
		return g, err
	}
	for _, e := range table.Elts {
		message := e.(*ast.CompositeLit)
		name, err := text(message.Elts[0])
		if err != nil {
			return g, err
		}
		section, id, _ := strings.Cut(name, " ")
		g.Rules = append(g.Rules, rule(id, "RFC 5118 §"+section, deserved(message.Elts[2], ""), "sipfront.TestRFC5118/"+name))
	}
	return g, nil
}

// deserved puts an answer into words.
func deserved(code ast.Expr, reason string) string {
	says := "Answered " + code.(*ast.BasicLit).Value + "."
	switch code.(*ast.BasicLit).Value {
	case "0":
		says = "No answer."
	case "200":
		says = "Accepted."
	}
	if reason != "" {
		says += " " + strings.ToUpper(reason[:1]) + reason[1:] + "."
	}
	return says
}

// literal is the composite literal that a variable of a file is set to.
func literal(path, name string) (*ast.CompositeLit, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			if v, ok := s.(*ast.ValueSpec); ok && v.Names[0].Name == name && len(v.Values) == 1 {
				if c, ok := v.Values[0].(*ast.CompositeLit); ok {
					return c, nil
				}
			}
		}
	}
	return nil, fmt.Errorf("%s: no table %s", path, name)
}

func text(e ast.Expr) (string, error) {
	b, ok := e.(*ast.BasicLit)
	if !ok || b.Kind != token.STRING {
		return "", fmt.Errorf("not a string: %v", e)
	}
	return strconv.Unquote(b.Value)
}
