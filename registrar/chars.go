package registrar

import "strings"

// class is a set of the character classes of RFC 3261 §25.1.
type class uint8

const (
	classToken    class = 1 << iota // token
	classUser                       // user: unreserved, user-unreserved
	classPassword                   // password
	classParam                      // paramchar
	classHeader                     // hnv-unreserved, unreserved
	classAlnum                      // alphanum
	classHost                       // token, and what a host in a generic-param may hold
)

// classes is a table, written once and only read.
var classes = makeClasses()

func makeClasses() (t [256]class) {
	add := func(c class, chars string) {
		for i := 0; i < len(chars); i++ {
			t[chars[i]] |= c
		}
	}
	const (
		alnum      = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		unreserved = alnum + "-_.!~*'()"
		token      = alnum + "-.!%*_+`'~"
	)
	add(classAlnum, alnum)
	add(classToken, token)
	add(classUser, unreserved+"&=+$,;?/")
	add(classPassword, unreserved+"&=+$,")
	add(classParam, unreserved+"[]/:&+$")
	add(classHeader, unreserved+"[]/?:+$")
	add(classHost, token+"[]:")
	return t
}

func isToken(c byte) bool { return classes[c]&classToken != 0 }
func isAlnum(c byte) bool { return classes[c]&classAlnum != 0 }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// unfold makes one line of a folded header field value (RFC 3261 §7.3.1). A line
// break that is no fold is refused, so that nothing parsed here can ever break a line of an answer.
func unfold(s string) (string, bool) {
	if strings.IndexByte(s, '\r') < 0 && strings.IndexByte(s, '\n') < 0 {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "\r\n ") || strings.HasPrefix(s[i:], "\r\n\t"):
			i++ // the blank itself follows
		case s[i] == '\r' || s[i] == '\n':
			return "", false
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), true
}

// allIn reports whether s holds nothing but characters of the class and, where
// escapes is set, well-formed escapes.
func allIn(s string, c class, escapes bool) bool {
	for i := 0; i < len(s); i++ {
		if classes[s[i]]&c != 0 && (s[i] != '%' || !escapes) {
			continue
		}
		if !escapes || s[i] != '%' || i+2 >= len(s) || unhex(s[i+1]) < 0 || unhex(s[i+2]) < 0 {
			return false
		}
		i += 2
	}
	return true
}

func allDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

// unhex is the value of a hexadecimal digit, or -1.
func unhex(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// unescape decodes every well-formed %HH.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		c, n, _ := decodeAt(s, i)
		b = append(b, c)
		i += n
	}
	return string(b)
}

// decodeAt returns the character at s[i], the bytes it takes there, and whether it was escaped.
func decodeAt(s string, i int) (c byte, n int, escaped bool) {
	if s[i] == '%' && i+2 < len(s) {
		if hi, lo := unhex(s[i+1]), unhex(s[i+2]); hi >= 0 && lo >= 0 {
			return byte(hi<<4 | lo), 3, true
		}
	}
	return s[i], 1, false
}

// lower is strings.ToLower for ASCII that does not allocate when there is nothing to do.
func lower(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return strings.ToLower(s)
		}
	}
	return s
}

// trim removes LWS on both sides.
func trim(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	for s != "" && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}
