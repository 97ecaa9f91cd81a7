package harness

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"strings"
)

// challenge is a Digest challenge that a phone can answer again and again (RFC 7616, MD5 with qop=auth).
type challenge struct {
	realm, nonce, opaque string
	qop                  bool
	count                uint32 // nc of the newest answer
}

// parseChallenge takes the first MD5 challenge of a 401.
func parseChallenge(a Answer) (*challenge, error) {
	for _, value := range a.Headers["www-authenticate"] {
		rest, ok := strings.CutPrefix(value, "Digest ")
		if !ok {
			continue
		}
		c := &challenge{}
		algorithm := "MD5"
		for _, part := range splitList(rest) {
			name, v, _ := strings.Cut(part, "=")
			v = strings.Trim(strings.TrimSpace(v), `"`)
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "realm":
				c.realm = v
			case "nonce":
				c.nonce = v
			case "opaque":
				c.opaque = v
			case "algorithm":
				algorithm = v
			case "qop":
				for _, q := range strings.Split(v, ",") {
					c.qop = c.qop || strings.TrimSpace(q) == "auth"
				}
			}
		}
		if strings.EqualFold(algorithm, "MD5") && c.nonce != "" {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no MD5 challenge in %q", a.Headers["www-authenticate"])
}

// answer is the value of Authorization for the next request with this challenge.
func (c *challenge) answer(u User, method, uri string) string {
	c.count++
	ha1 := hexMD5(u.Name + ":" + c.realm + ":" + u.Password)
	ha2 := hexMD5(method + ":" + uri)
	var b strings.Builder
	fmt.Fprintf(&b, `Digest username="%s",realm="%s",nonce="%s",uri="%s",algorithm=MD5`, u.Name, c.realm, c.nonce, uri)
	if c.qop {
		nc, cnonce := fmt.Sprintf("%08x", c.count), "0a4f113b"
		fmt.Fprintf(&b, `,qop=auth,nc=%s,cnonce="%s",response="%s"`, nc, cnonce,
			hexMD5(strings.Join([]string{ha1, c.nonce, nc, cnonce, "auth", ha2}, ":")))
	} else {
		fmt.Fprintf(&b, `,response="%s"`, hexMD5(ha1+":"+c.nonce+":"+ha2))
	}
	if c.opaque != "" {
		fmt.Fprintf(&b, `,opaque="%s"`, c.opaque)
	}
	return b.String()
}

func hexMD5(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}
