package registrar

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"strings"
)

// The digest algorithms (RFC 7616 §6.1, RFC 8760 §2). Each may be named with "-sess" in a challenge.
const (
	MD5       = "MD5"
	SHA256    = "SHA-256"
	SHA512256 = "SHA-512-256"
)

// HA1 is what is stored instead of a password: H(user:realm:password) in
// hexadecimal (RFC 7616 §3.4.2). user is the username as the client will send it.
func HA1(algorithm, user, realm, password string) (string, error) {
	name, _ := baseAlgorithm(algorithm)
	if name == "" {
		return "", fmt.Errorf("digest algorithm %q is not known; use %s, %s or %s", algorithm, MD5, SHA256, SHA512256)
	}
	return string(hashHex(nil, name, []byte(user+":"+realm+":"+password))), nil
}

// HA1Key is the key under which a user's HA1 is found: some clients send
// "alice@example.test" as their username, which makes another HA1 than "alice".
func HA1Key(algorithm string, withDomain bool) string {
	if withDomain {
		return algorithm + "@"
	}
	return algorithm
}

// HA1s makes the HA1s of one password, for each algorithm and both forms of the username.
func HA1s(algorithms []string, user AOR, realm, password string) (map[string]string, error) {
	ha1 := make(map[string]string, 2*len(algorithms))
	for _, algorithm := range algorithms {
		for _, withDomain := range []bool{false, true} {
			name := user.User()
			if withDomain {
				name += "@" + user.Domain()
			}
			h, err := HA1(algorithm, name, realm, password)
			if err != nil {
				return nil, err
			}
			base, _ := baseAlgorithm(algorithm)
			ha1[HA1Key(base, withDomain)] = h
		}
	}
	return ha1, nil
}

// baseAlgorithm returns the algorithm's own name without "-sess", "" if it is not
// known. Names compare without regard to case; none means MD5 (RFC 7616 §3.3).
func baseAlgorithm(s string) (name string, sess bool) {
	if n := len(s) - len("-sess"); n > 0 && strings.EqualFold(s[n:], "-sess") {
		s, sess = s[:n], true
	}
	switch {
	case s == MD5, s == "" && !sess, strings.EqualFold(s, MD5):
		return MD5, sess
	case strings.EqualFold(s, SHA256):
		return SHA256, sess
	case strings.EqualFold(s, SHA512256):
		return SHA512256, sess
	}
	return "", false
}

// hashHex appends the hash of data in hexadecimal to dst.
func hashHex(dst []byte, name string, data []byte) []byte {
	switch name {
	case MD5:
		sum := md5.Sum(data)
		return hex.AppendEncode(dst, sum[:])
	case SHA256:
		sum := sha256.Sum256(data)
		return hex.AppendEncode(dst, sum[:])
	default:
		sum := sha512.Sum512_256(data)
		return hex.AppendEncode(dst, sum[:])
	}
}

// hexSize is the length of a hash in hexadecimal.
func hexSize(name string) int {
	if name == MD5 {
		return 2 * md5.Size
	}
	return 2 * sha256.Size
}

// Offers returns the algorithms that the Authenticator challenges with: those whose HA1s it needs.
func (a *Authenticator) Offers() []string {
	offers := make([]string, len(a.algorithms()))
	for i, s := range a.algorithms() {
		offers[i], _ = baseAlgorithm(s)
	}
	return offers
}
