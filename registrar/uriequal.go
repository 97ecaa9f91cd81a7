package registrar

import "strings"

// Equal compares by RFC 3261 §19.1.4. The relation is not transitive: a
// parameter that only one side has is ignored, with the exceptions of the RFC.
func (u URI) Equal(v URI) bool {
	if u.Scheme != v.Scheme {
		return false
	}
	if u.Scheme == "tel" {
		return equalTel(u, v)
	}
	return u.Port == v.Port &&
		u.HasPassword == v.HasPassword &&
		equalEscaped(u.User, v.User, false) &&
		equalEscaped(u.Password, v.Password, false) &&
		equalHost(u.Host, v.Host) &&
		equalParams(u.Params, v.Params) &&
		equalHeaders(u.Headers, v.Headers)
}

// equalURI compares two URIs as received. Equal bytes are by far the usual case.
func equalURI(a, b string) bool {
	if a == b {
		return true
	}
	if len(a) < 4 || len(b) < 4 || strings.EqualFold(a[:4], "tel:") {
		return equalParsed(a, b)
	}
	if !strings.EqualFold(a[:4], b[:4]) {
		return false // another scheme; no need to parse
	}
	if differAtSight(a, b) {
		return false
	}
	return equalParsed(a, b)
}

func equalParsed(a, b string) bool {
	u, errU := ParseURI(a)
	v, errV := ParseURI(b)
	return errU == nil && errV == nil && u.Equal(v)
}

// differAtSight spares the parsing of two URIs with different users or hosts, which
// is what the several contacts of a user mostly are. false says nothing.
func differAtSight(a, b string) bool {
	userA, hostA := sight(a)
	userB, hostB := sight(b)
	if strings.IndexByte(userA, '%') < 0 && strings.IndexByte(userB, '%') < 0 && userA != userB {
		return true
	}
	return !strings.HasPrefix(hostA, "[") && !strings.EqualFold(hostA, hostB)
}

// sight cuts userinfo and host out of a URI; both are only meant for URIs that are well formed.
func sight(s string) (user, host string) {
	rest := s[strings.IndexByte(s, ':')+1:]
	if at := strings.IndexByte(rest, '@'); at >= 0 {
		user, rest = rest[:at], rest[at+1:]
	}
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case ':', ';', '?':
			return user, rest[:i]
		}
	}
	return user, rest
}

// equalEscaped: a character and its escape are the same, unless the character is reserved.
func equalEscaped(a, b string, fold bool) bool {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		c, n, escC := decodeAt(a, i)
		d, m, escD := decodeAt(b, j)
		if escC != escD && strings.IndexByte(";/?:@&=+$,", c) >= 0 {
			return false
		}
		if c != d && (!fold || lowerByte(c) != lowerByte(d)) {
			return false
		}
		i, j = i+n, j+m
	}
	return i == len(a) && j == len(b)
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// equalHost compares IPv6 references by value (RFC 5954 §4.2), all else by name.
func equalHost(a, b string) bool {
	if a == b {
		return true
	}
	if !strings.HasPrefix(a, "[") || !strings.HasPrefix(b, "[") {
		return strings.EqualFold(a, b)
	}
	x, okX := parseReference(a)
	y, okY := parseReference(b)
	return okX && okY && x == y
}

func equalParams(a, b []Param) bool {
	for _, p := range a {
		q, both := find(b, p.Name)
		if both && !equalEscaped(p.Value, q.Value, true) {
			return false
		}
		if !both && countsAlone(p.Name) {
			return false
		}
	}
	for _, q := range b {
		if _, both := find(a, q.Name); !both && countsAlone(q.Name) {
			return false
		}
	}
	return true
}

// countsAlone: these parameters make a difference even if only one URI has them.
// The RFC's rules name user, ttl, method and maddr; transport follows from its
// rule on components with default values and from its examples.
func countsAlone(name string) bool {
	switch lower(name) {
	case "user", "ttl", "method", "maddr", "transport":
		return true
	}
	return false
}

// equalHeaders: header components are never ignored; their order is free.
func equalHeaders(a, b []Param) bool {
	if len(a) != len(b) {
		return false
	}
	var used [maxParams]bool
next:
	for _, h := range a {
		for i, g := range b {
			if !used[i] && equalEscaped(h.Name, g.Name, true) && equalEscaped(h.Value, g.Value, false) {
				used[i] = true
				continue next
			}
		}
		return false
	}
	return true
}

// equalTel compares numbers without their visual separators; every parameter counts (RFC 3966 §4).
func equalTel(u, v URI) bool {
	separators := strings.NewReplacer("-", "", ".", "", "(", "", ")", "")
	if !strings.EqualFold(separators.Replace(u.User), separators.Replace(v.User)) || len(u.Params) != len(v.Params) {
		return false
	}
	for _, p := range u.Params {
		q, both := find(v.Params, p.Name)
		if !both || !equalEscaped(p.Value, q.Value, true) {
			return false
		}
	}
	return true
}
