package registrar

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseContacts reads all Contact header field values of one REGISTER. star says
// that a lone "*" was among them; whether that is allowed is for Decide.
func ParseContacts(values []string) (contacts []Contact, star bool, err error) {
	for _, v := range values {
		list, err := SplitList(v)
		if err != nil {
			return nil, false, fmt.Errorf("Contact %s: %w", quote(v), err)
		}
		for _, item := range list {
			if item == "*" {
				star = true
				continue
			}
			c, err := parseContact(item)
			if err != nil {
				return nil, false, fmt.Errorf("Contact: %w", err)
			}
			contacts = append(contacts, c)
		}
	}
	return contacts, star, nil
}

func parseContact(s string) (Contact, error) {
	a, err := ParseAddress(s)
	if err != nil {
		return Contact{}, err
	}
	if _, err := ParseURI(a.URI); err != nil {
		return Contact{}, err
	}
	c := Contact{URI: a.URI, Q: -1, Display: a.Display}
	var others strings.Builder
	for _, p := range a.Params {
		ok := true
		switch lower(p.Name) {
		case "expires":
			if c.Expires = ParseExpires(p.Value); p.Quoted {
				c.Expires = ExpiresIn{Given: true}
			}
		case "q":
			c.Q, ok = parseQ(p.Value)
		case "+sip.instance":
			c.Instance, ok = parseInstance(p.Value)
		case "reg-id":
			c.RegID, ok = parseRegID(p.Value)
		case "pub-gruu", "temp-gruu": // the registrar's to give (RFC 5627 §5.1)
		default:
			writeParam(&others, p)
		}
		if !ok {
			return Contact{}, fmt.Errorf("address %s: malformed parameter %s", quote(s), quote(p.Name))
		}
	}
	c.Params = others.String()
	return c, nil
}

func writeParam(b *strings.Builder, p Param) {
	b.WriteByte(';')
	b.WriteString(p.Name)
	switch {
	case p.Bare:
	case p.Quoted:
		b.WriteString("=" + quoted(p.Value))
	default:
		b.WriteString("=" + p.Value)
	}
}

// ParseExpires reads the value of an Expires header field or parameter. A number
// too great for delta-seconds counts as the greatest one; what is no number is given but not valid.
func ParseExpires(s string) ExpiresIn {
	s = trim(s)
	if !allDigits(s) {
		return ExpiresIn{Given: true}
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		n = math.MaxUint32
	}
	return ExpiresIn{Given: true, Valid: true, Seconds: uint32(n)}
}

// parseQ reads a qvalue as thousandths.
func parseQ(s string) (int, bool) {
	whole, frac, _ := strings.Cut(s, ".")
	if (whole != "0" && whole != "1") || len(frac) > 3 || (frac != "" && !allDigits(frac)) {
		return 0, false
	}
	n := int(whole[0]-'0') * 1000
	for i, unit := 0, 100; i < len(frac); i, unit = i+1, unit/10 {
		n += int(frac[i]-'0') * unit
	}
	return n, n <= 1000
}

// parseInstance reads "<urn:...>", the quotes already gone (RFC 5626 §4.1).
func parseInstance(s string) (string, bool) {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "<"), ">")
	return s, s != ""
}

// parseRegID reads 1 to 2^31-1 (RFC 5626 §4.2).
func parseRegID(s string) (uint32, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return uint32(n), err == nil && n > 0 && allDigits(s)
}
