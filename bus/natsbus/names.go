package natsbus

import (
	"fmt"
	"strconv"
	"strings"
)

// names are the pool's streams and subjects.
type names struct{ namespace string }

func (n names) poolBucket() string  { return n.namespace + "_pool" }
func (n names) usersBucket() string { return n.namespace + "_users" }
func (n names) log() string         { return n.namespace + "_bindings" }

func (n names) bindings(group, user string) string {
	return n.namespace + ".bindings." + encodeToken(group) + "." + encodeToken(user)
}
func (n names) bindingsOf(group string) string {
	return n.namespace + ".bindings." + encodeToken(group) + ".*"
}
func (n names) pulse(frontEnd string) string { return n.namespace + ".pulse." + encodeToken(frontEnd) }
func (n names) request(frontEnd, verb string) string {
	return n.namespace + ".fe." + encodeToken(frontEnd) + "." + encodeToken(verb)
}
func (n names) event(kind string) string { return n.namespace + ".event." + encodeToken(kind) }

// lastToken decodes the last token of a subject.
func lastToken(subject string) (string, error) {
	return decodeToken(subject[strings.LastIndexByte(subject, '.')+1:])
}

// group and user of a subject made by bindings.
func parseBindings(subject string) (group, user string, err error) {
	userAt := strings.LastIndexByte(subject, '.')
	groupAt := strings.LastIndexByte(subject[:max(userAt, 0)], '.')
	if groupAt < 0 {
		return "", "", fmt.Errorf("subject %q is not one of the bindings log", subject)
	}
	if group, err = decodeToken(subject[groupAt+1 : userAt]); err != nil {
		return "", "", err
	}
	user, err = decodeToken(subject[userAt+1:])
	return group, user, err
}

// A key becomes one token of a subject per segment between slashes, so that a prefix
// that ends in a slash is a wildcard: "member/fe1" is member.fe1. The tokens stay
// readable: alice@example.test is alice=40example=2Etest.
func encodeKey(key string) string {
	if !strings.Contains(key, "/") {
		return encodeToken(key)
	}
	segments := strings.Split(key, "/")
	for i, s := range segments {
		segments[i] = encodeToken(s)
	}
	return strings.Join(segments, ".")
}

func decodeKey(encoded string) (string, error) {
	tokens := strings.Split(encoded, ".")
	for i, t := range tokens {
		var err error
		if tokens[i], err = decodeToken(t); err != nil {
			return "", err
		}
	}
	return strings.Join(tokens, "/"), nil
}

// prefixFilter is the narrowest wildcard under which all keys with this prefix are.
func prefixFilter(prefix string) string {
	whole := strings.LastIndexByte(prefix, '/')
	if whole < 0 {
		return ">"
	}
	return encodeKey(prefix[:whole]) + ".>"
}

const hexDigits = "0123456789ABCDEF"

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c == '-' || c == '_'
}

// encodeToken makes any string one token of letters, digits, - _ =, and never an empty one.
func encodeToken(s string) string {
	if s == "" {
		return "="
	}
	special := 0
	for i := range len(s) {
		if !plain(s[i]) {
			special++
		}
	}
	if special == 0 {
		return s
	}
	token := make([]byte, 0, len(s)+2*special)
	for i := range len(s) {
		if c := s[i]; plain(c) {
			token = append(token, c)
		} else {
			token = append(token, '=', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return string(token)
}

func decodeToken(token string) (string, error) {
	if token == "=" {
		return "", nil
	}
	if !strings.Contains(token, "=") {
		return token, nil
	}
	s := make([]byte, 0, len(token))
	for i := 0; i < len(token); i++ {
		if token[i] != '=' {
			s = append(s, token[i])
			continue
		}
		if i+2 >= len(token) {
			return "", fmt.Errorf("token %q is not one of ours", token)
		}
		c, err := strconv.ParseUint(token[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("token %q is not one of ours", token)
		}
		s = append(s, byte(c))
		i += 2
	}
	return string(s), nil
}
