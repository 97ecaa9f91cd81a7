package registrar

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"strings"
	"testing"
)

// answer makes an Authorization value as a client does. It shares no code with what it tests.
func answer(t testing.TB, user, password, algorithm, nonce, qop string, nc int, req *Request) string {
	t.Helper()
	realm := req.AOR.Domain()
	h := func(s string) string {
		switch strings.TrimSuffix(algorithm, "-sess") {
		case "SHA-256":
			return fmt.Sprintf("%x", sha256.Sum256([]byte(s)))
		case "SHA-512-256":
			return fmt.Sprintf("%x", sha512.Sum512_256([]byte(s)))
		}
		return fmt.Sprintf("%x", md5.Sum([]byte(s)))
	}
	ha1 := h(user + ":" + realm + ":" + password)
	if strings.HasSuffix(algorithm, "-sess") {
		ha1 = h(ha1 + ":" + nonce + ":0a4f113b")
	}
	a2 := "REGISTER:" + req.RequestURI
	if req.Method != "" {
		a2 = req.Method + ":" + req.RequestURI
	}
	if qop == "auth-int" {
		a2 += ":" + h(string(req.Body))
	}
	v := fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s"`, user, realm, nonce, req.RequestURI)
	if algorithm != "" {
		v += ", algorithm=" + algorithm
	}
	if qop == "" {
		return v + `, response="` + h(ha1+":"+nonce+":"+h(a2)) + `"`
	}
	count := fmt.Sprintf("%08x", nc)
	response := h(strings.Join([]string{ha1, nonce, count, "0a4f113b", qop, h(a2)}, ":"))
	return v + fmt.Sprintf(`, qop=%s, nc=%s, cnonce="0a4f113b", response="%s"`, qop, count, response)
}
