package directory

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"rollcall/registrar"
	"rollcall/routing"
)

// Algorithms lists the digest algorithms that HA1s are stored for (RFC 7616 §6.1), the one that every client can do first.
func Algorithms() []string {
	return []string{registrar.MD5, registrar.SHA256, registrar.SHA512256}
}

// names of all HA1s, one string each for all users of a process.
var ha1Names = func() (names []string) {
	for _, algorithm := range Algorithms() {
		names = append(names, registrar.HA1Key(algorithm, false), registrar.HA1Key(algorithm, true))
	}
	return names
}()

// ha1Size is the length in bytes of the hash named like that, 0 when it is unknown.
func ha1Size(name string) int {
	switch strings.TrimSuffix(name, "@") {
	case registrar.MD5:
		return 16
	case registrar.SHA256, registrar.SHA512256:
		return 32
	}
	return 0
}

// Encode returns the value stored for a user.
func Encode(u User) ([]byte, error) {
	if err := check(u); err != nil {
		return nil, fmt.Errorf("user %s: %w", u.AOR, err)
	}
	type plain User
	data, err := json.Marshal(plain(u))
	if err != nil || len(u.unknown) == 0 {
		return data, err
	}
	// Fields that a newer version stored stay as they are.
	fields := make(map[string]json.RawMessage, len(u.unknown)+3)
	for name, value := range u.unknown {
		fields[name] = value
	}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// storedUser is a record as it stands on the bus.
type storedUser struct {
	Group       *routing.Group    `json:"group"`
	HA1         map[string]string `json:"ha1"`
	MaxContacts int               `json:"max_contacts"`
}

// Decode reads a stored user. What it knows must be right; fields that it does
// not know are a newer version's and are kept for the next Encode.
func Decode(a registrar.AOR, value []byte) (User, error) {
	stored, unknown, err := decodeFields(value)
	if err == nil && stored.Group == nil {
		err = errors.New("no group")
	}
	if err != nil {
		return User{}, fmt.Errorf("user %s: stored record is damaged: %w", a, err)
	}
	u := User{AOR: a, Group: *stored.Group, HA1: stored.HA1, MaxContacts: stored.MaxContacts, unknown: unknown}
	if err := check(u); err != nil {
		return User{}, fmt.Errorf("user %s: stored record is damaged: %w", a, err)
	}
	return u, nil
}

// decodeFields reads the fields that this version knows, and the others as they stand.
func decodeFields(value []byte) (stored storedUser, unknown map[string]json.RawMessage, err error) {
	// Nearly always there are no others, and one pass is enough.
	strict := json.NewDecoder(bytes.NewReader(value))
	strict.DisallowUnknownFields()
	if strict.Decode(&stored) == nil {
		if _, err := strict.Token(); err == io.EOF {
			return stored, nil, nil
		}
	}
	stored = storedUser{}
	if err := json.Unmarshal(value, &stored); err != nil {
		return stored, nil, err
	}
	if err := json.Unmarshal(value, &unknown); err != nil {
		return stored, nil, err
	}
	for _, known := range []string{"group", "ha1", "max_contacts"} {
		delete(unknown, known)
	}
	if len(unknown) == 0 {
		unknown = nil
	}
	return stored, unknown, nil
}

// check says what is wrong with a user that is to be stored or was read.
func check(u User) error {
	switch {
	case u.AOR == "" || len(u.AOR) > 512:
		return fmt.Errorf("an AOR has 1 to 512 bytes, this one %d", len(u.AOR))
	case u.Group == "":
		return errors.New("no group")
	case u.MaxContacts < 0:
		return fmt.Errorf("max_contacts %d is negative", u.MaxContacts)
	}
	for name, ha1 := range u.HA1 {
		if err := checkHA1(name, ha1); err != nil {
			return err
		}
	}
	return nil
}

// checkHA1 wants hexadecimal digits of the algorithm's length. Its error doesn't
// show the HA1: who has it can log in. An algorithm of a newer version passes.
func checkHA1(name, ha1 string) error {
	size := ha1Size(name)
	if size == 0 {
		return nil
	}
	if raw, err := hex.DecodeString(ha1); err != nil || len(raw) != size {
		return fmt.Errorf("the %s HA1 is not %d hexadecimal digits", strings.TrimSuffix(name, "@"), 2*size)
	}
	return nil
}
