package bearer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// jwk is one member of a JWK set, as far as it says how to check a signature (RFC 7517 §4, RFC 7518 §6, RFC 8037 §2).
type jwk struct {
	KTY       string   `json:"kty"`
	Use       string   `json:"use"`
	Ops       []string `json:"key_ops"`
	Algorithm string   `json:"alg"`
	ID        string   `json:"kid"`
	Curve     string   `json:"crv"`
	N         string   `json:"n"`
	E         string   `json:"e"`
	X         string   `json:"x"`
	Y         string   `json:"y"`
	D         string   `json:"d"` // private
	K         string   `json:"k"` // secret
}

// parseJWKS reads a JWK set. Keys of a kind that is not known, or for another purpose
// than signatures, are left out (RFC 7517 §5); a known one that is malformed, or more than public, is an error.
func parseJWKS(data []byte) ([]key, error) {
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("no JWK set: %w", err)
	}
	if set.Keys == nil {
		return nil, errors.New(`no JWK set: it has no "keys"`)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("%d keys: at most %d", len(set.Keys), maxKeys)
	}
	var keys []key
	for i := range set.Keys {
		j := &set.Keys[i]
		if j.D != "" || j.K != "" {
			return nil, fmt.Errorf("key number %d (kid %q) is private or secret: publish the public part only", i+1, j.ID)
		}
		public, err := j.public()
		if err == nil && public != nil {
			var k key
			if k, err = newKey(j.ID, public); err == nil && (j.Algorithm == "" || j.Algorithm == k.algorithm) {
				keys = append(keys, k)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("key number %d (kid %q): %w", i+1, j.ID, err)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("none of its keys is for RS256, ES256 or EdDSA signatures")
	}
	return keys, nil
}

// public is the key itself, nil when it is of no use here.
func (j *jwk) public() (crypto.PublicKey, error) {
	if j.Use != "" && j.Use != "sig" || j.Ops != nil && !slices.Contains(j.Ops, "verify") {
		return nil, nil
	}
	switch {
	case j.KTY == "RSA":
		return j.rsa()
	case j.KTY == "EC" && j.Curve == "P-256":
		x, errX := number("x", j.X, 32)
		y, errY := number("y", j.Y, 32)
		if err := errors.Join(errX, errY); err != nil {
			return nil, err
		}
		point := append(append([]byte{4}, x...), y...)                  // uncompressed, SEC 1 §2.3.3
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point) // checks that it is on the curve
	case j.KTY == "OKP" && j.Curve == "Ed25519":
		x, err := number("x", j.X, ed25519.PublicKeySize)
		return ed25519.PublicKey(x), err
	}
	return nil, nil
}

func (j *jwk) rsa() (crypto.PublicKey, error) {
	n, err := number("n", j.N, 0)
	if err != nil {
		return nil, err
	}
	e, err := number("e", j.E, 0)
	if err != nil {
		return nil, err
	}
	exponent := new(big.Int).SetBytes(e)
	if exponent.BitLen() > 31 || exponent.Int64() < 3 || exponent.Bit(0) == 0 {
		return nil, errors.New("exponent e is not an odd number of 3 or more")
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(exponent.Int64())}, nil
}

// number reads base64url without padding (RFC 7518 §2), of that many bytes unless size is 0.
func number(name, value string, size int) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(value)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is not base64url without padding", name)
	case len(b) == 0:
		return nil, fmt.Errorf("%s is missing", name)
	case size != 0 && len(b) != size:
		return nil, fmt.Errorf("%s has %d bytes, not %d", name, len(b), size)
	}
	return b, nil
}
