package bearer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
)

// key is one key that tokens may be signed with.
type key struct {
	id        string // kid; "" of PEM files and secrets, which go with any
	algorithm string
	public    any // as golang-jwt wants it
}

const (
	maxFile    = 1 << 20 // bytes of a key file
	maxKeys    = 64      // of all files
	minRSABits = 2048    // RFC 7518 §3.3
	maxRSABits = 8192    // what a check may cost
	minSecret  = 32      // bytes of an HS256 secret, RFC 7518 §3.2
)

// read returns all keys of the files. Its errors name the file.
func (c *Config) read() ([]key, error) {
	var keys []key
	add := func(name string, parse func([]byte) ([]key, error)) error {
		if name == "" {
			return nil
		}
		data, err := readFile(name)
		if err != nil {
			return err // names the file
		}
		more, err := parse(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if keys = append(keys, more...); len(keys) > maxKeys {
			return fmt.Errorf("%s: more than %d keys in all", name, maxKeys)
		}
		return nil
	}
	if err := add(c.JWKS, parseJWKS); err != nil {
		return nil, err
	}
	for _, name := range c.PEM {
		if err := add(name, parsePEM); err != nil {
			return nil, err
		}
	}
	if err := add(c.Secret, parseSecret); err != nil {
		return nil, err
	}
	return keys, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s: more than %d bytes: is this a key file?", name, maxFile)
	}
	return data, err
}

// parsePEM reads public keys and certificates, one after the other.
func parsePEM(data []byte) (keys []key, err error) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		var public any
		switch block.Type {
		case "PUBLIC KEY":
			public, err = x509.ParsePKIXPublicKey(block.Bytes)
		case "RSA PUBLIC KEY":
			public, err = x509.ParsePKCS1PublicKey(block.Bytes)
		case "CERTIFICATE":
			var cert *x509.Certificate
			if cert, err = x509.ParseCertificate(block.Bytes); err == nil {
				public = cert.PublicKey
			}
		default:
			err = fmt.Errorf("holds a %s: give the PUBLIC KEY or CERTIFICATE that goes with it", block.Type)
		}
		if err != nil {
			return nil, err
		}
		k, err := newKey("", public)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, errors.New("no PEM block with a PUBLIC KEY or CERTIFICATE")
	}
	return keys, nil
}

// newKey says which algorithm a public key is for.
func newKey(id string, public crypto.PublicKey) (key, error) {
	switch p := public.(type) {
	case *rsa.PublicKey:
		if n := p.N.BitLen(); n < minRSABits || n > maxRSABits {
			return key{}, fmt.Errorf("RSA key of %d bits: %d to %d are accepted", n, minRSABits, maxRSABits)
		}
		return key{id, "RS256", p}, nil
	case *ecdsa.PublicKey:
		if p.Curve != elliptic.P256() {
			return key{}, fmt.Errorf("EC key on %s: ES256 needs P-256", p.Curve.Params().Name)
		}
		return key{id, "ES256", p}, nil
	case ed25519.PublicKey:
		return key{id, "EdDSA", p}, nil
	}
	return key{}, fmt.Errorf("key of type %T: RSA, EC P-256 and Ed25519 are known", public)
}

// parseSecret takes the whole file, without the line end that editors add.
func parseSecret(data []byte) ([]key, error) {
	for len(data) > 0 && (data[len(data)-1] == '\n' || data[len(data)-1] == '\r') {
		data = data[:len(data)-1]
	}
	if len(data) < minSecret {
		return nil, fmt.Errorf("secret of %d bytes: HS256 needs at least %d (RFC 7518 §3.2)", len(data), minSecret)
	}
	return []key{{"", "HS256", data}}, nil
}
