// Package directory is the pool's table of provisioned users: every process that
// needs it follows it into memory, and a new user gets the emptiest routing group
// in the moment he is provisioned.
package directory

import (
	"encoding/json"

	"rollcall/registrar"
	"rollcall/routing"
)

// User is one provisioned user as stored in the users table, keyed by AOR, as JSON.
type User struct {
	AOR   registrar.AOR `json:"-"` // the entry's key
	Group routing.Group `json:"group"`
	// HA1 by digest algorithm ("MD5", "SHA-256", "SHA-512-256"), in hexadecimal (RFC 7616 §3.4.2).
	// A password is never stored. A User from Lookup shares this map with the table: read it only.
	HA1 map[string]string `json:"ha1,omitempty"`
	// MaxContacts bounds the bindings of this user; 0 means the pool's default.
	MaxContacts int `json:"max_contacts,omitempty"`

	unknown map[string]json.RawMessage // fields of a newer version, between Decode and Encode
}
