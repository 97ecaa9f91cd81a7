package wire

import (
	"strconv"
	"strings"
)

// status is the code of a response, 0 for anything else.
func status(m string) int {
	f := strings.SplitN(m, " ", 3)
	if len(f) < 3 || f[0] != "SIP/2.0" {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}

// fields are the values of a message's header fields of a name.
func fields(m, name string) []string {
	var values []string
	for line := range strings.SplitSeq(m, "\r\n") {
		if n, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(strings.TrimSpace(n), name) {
			values = append(values, strings.TrimSpace(v))
		}
	}
	return values
}

// field is the first of them, or "".
func field(m, name string) string {
	if v := fields(m, name); len(v) > 0 {
		return v[0]
	}
	return ""
}

func branchOf(m string) string {
	_, after, ok := strings.Cut(m, "branch=")
	if !ok {
		return ""
	}
	return after[:strings.IndexAny(after+";", ";\r ,")]
}

// parameter is one of a challenge, without its quotes.
func parameter(challenge, name string) string {
	for part := range strings.SplitSeq(challenge, ",") {
		n, v, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(part, "Digest ")), "=")
		if n == name {
			return strings.Trim(v, `"`)
		}
	}
	return ""
}

// bound is one contact of a 200.
type bound struct {
	uri     string
	expires int
}

// contacts are the bindings that a 200 lists, one in each field, as ours does.
func contacts(m string) []bound {
	var all []bound
	for _, v := range fields(m, "Contact") {
		uri, params, _ := strings.Cut(strings.TrimPrefix(v, "<"), ">")
		_, e, _ := strings.Cut(params, ";expires=")
		n, err := strconv.Atoi(e)
		if err != nil {
			n = -1
		}
		all = append(all, bound{uri, n})
	}
	return all
}

// uris are the contacts' addresses in the order of the answer.
func uris(m string) string {
	var list []string
	for _, b := range contacts(m) {
		list = append(list, b.uri)
	}
	return strings.Join(list, " ")
}
