package registrar

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// AOR is an address-of-record in canonical form: "sip:alice@example.test" (RFC 3261 §10.3 step 5).
type AOR string

// maxAOR keeps an AOR below what a key on the bus may hold.
const maxAOR = 480

// ParseAOR returns the canonical form of a SIP or SIPS URI: sip scheme, no
// password, parameters or headers, host in lower case, no default port, and only
// those characters of the user escaped that must be. The user's case is kept.
func ParseAOR(s string) (AOR, error) {
	u, err := ParseURI(s)
	if err != nil {
		return "", err
	}
	if u.Scheme == "tel" {
		return "", fmt.Errorf("tel URI is no address-of-record: %w", ErrScheme)
	}
	aor := u.aor()
	if len(aor) > maxAOR {
		return "", errors.New("address-of-record is too long")
	}
	return aor, nil
}

// aor is the canonical form of a sip or sips URI.
func (u URI) aor() AOR {
	var b strings.Builder
	b.Grow(len("sip:@:65535") + len(u.User) + len(u.Host))
	b.WriteString("sip:")
	if u.User != "" {
		writeCanonicalUser(&b, u.User)
		b.WriteByte('@')
	}
	b.WriteString(canonicalHost(u.Host))
	if u.Port != 0 && u.Port != u.defaultPort() {
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(u.Port))
	}
	return AOR(b.String())
}

func (u URI) defaultPort() int {
	if u.Scheme == "sips" {
		return 5061
	}
	return 5060
}

// canonicalHost drops the root dot and shortens an IPv6 reference (RFC 5952).
func canonicalHost(h string) string {
	if strings.HasPrefix(h, "[") {
		if a, ok := parseReference(h); ok {
			return "[" + a.String() + "]"
		}
	}
	return strings.TrimSuffix(h, ".")
}

// writeCanonicalUser decodes all escapes and escapes again only what the grammar
// demands, so that one user has one spelling and the result is still a URI.
func writeCanonicalUser(b *strings.Builder, user string) {
	if strings.IndexByte(user, '%') < 0 {
		b.WriteString(user)
		return
	}
	writeEscaped(b, unescape(user))
}

func writeEscaped(b *strings.Builder, s string) {
	b.Write(appendEscaped(make([]byte, 0, 64), s, classUser))
}

// appendEscaped escapes what is not in the class.
func appendEscaped(v []byte, s string, allowed class) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		if c := s[i]; classes[c]&allowed != 0 {
			v = append(v, c)
		} else {
			v = append(v, '%', hex[c>>4], hex[c&15])
		}
	}
	return v
}

// aorOf makes the AOR of an unescaped user and a domain.
func aorOf(user, domain string) AOR {
	var b strings.Builder
	b.Grow(len("sip:@") + len(user) + len(domain))
	b.WriteString("sip:")
	writeEscaped(&b, user)
	b.WriteByte('@')
	b.WriteString(strings.ToLower(domain))
	return AOR(b.String())
}

// User is the part before the @, with escapes decoded; "" when there is none.
func (a AOR) User() string {
	s := strings.TrimPrefix(string(a), "sip:")
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return ""
	}
	return unescape(s[:at])
}

// Domain is the host, with its port if that is not the default one.
func (a AOR) Domain() string {
	s := strings.TrimPrefix(string(a), "sip:")
	return s[strings.LastIndexByte(s, '@')+1:]
}
