package directory

import (
	"fmt"
	"slices"
	"strings"

	"rollcall/registrar"
)

// Names says how the names that people type become users of a pool.
type Names struct {
	Domains []string // served, lower case; the first one is for names without a domain
	Realm   string   // of the pool; "" when the realm is the user's domain
}

// AOR returns the AOR of "alice", "alice@example.test" or "sip:alice@example.test".
// Its domain must be served.
func (n Names) AOR(name string) (registrar.AOR, error) {
	plain := strings.TrimPrefix(strings.TrimPrefix(name, "sips:"), "sip:")
	user, domain := plain, ""
	if at := strings.LastIndexByte(plain, '@'); at >= 0 {
		user, domain = plain[:at], strings.ToLower(plain[at+1:])
	} else if len(n.Domains) > 0 {
		domain = n.Domains[0]
	}
	if user == "" {
		return "", fmt.Errorf("user %q: no name; give alice or alice@domain", name)
	}
	a, err := registrar.ParseAOR("sip:" + escapeUser(user) + "@" + domain)
	if err != nil {
		return "", fmt.Errorf("user %q: %w", name, err)
	}
	if !slices.Contains(n.Domains, a.Domain()) {
		return "", fmt.Errorf("user %q: domain %s is not served, only %s", name, a.Domain(), strings.Join(n.Domains, " "))
	}
	return a, nil
}

// RealmOf returns the realm that a user's HA1s are made with.
func (n Names) RealmOf(a registrar.AOR) string {
	if n.Realm != "" {
		return n.Realm
	}
	return a.Domain()
}

// HA1s returns the HA1s of a password for every algorithm, so that the pool can
// change over to another one later without asking anybody for a password.
func (n Names) HA1s(a registrar.AOR, password string) (map[string]string, error) {
	return registrar.HA1s(Algorithms(), a, n.RealmOf(a), password)
}

// escapeUser escapes what cannot stand in the user part of a URI. A percent sign
// that starts an escape is left as it is.
func escapeUser(user string) string {
	const plain = "-_.!~*'()&=+$,;?/%"
	var b strings.Builder
	for i := range len(user) {
		c := user[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
