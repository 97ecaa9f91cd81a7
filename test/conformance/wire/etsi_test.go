package wire

import "testing"

// The tests of this file are named after the registrar's purposes of ETSI TS 102 027-2
// (V: valid, I: invalid, O: inopportune behaviour). The numbering follows the areas that
// the standard covers; see docs/CONFORMANCE.md for what that says and what it doesn't.

const (
	first     = "Contact: <sip:a@192.0.2.1>"
	second    = "<sip:b@192.0.2.2>"
	noExpires = "Expires: 600 => "
)

// A new contact is registered and listed with the time it has.
func TestSIP_RG_RR_V_001(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.lasts(c.do(200), "sip:a@192.0.2.1", 600)
	})
}

// A REGISTER without Contact is a query, and changes nothing.
func TestSIP_RG_RR_V_002(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.do(200, first+" => "+first+", "+second)
		for range 2 {
			a := c.query()
			c.lasts(a, "sip:a@192.0.2.1", 600)
			c.lasts(a, "sip:b@192.0.2.2", 600)
		}
	})
}

// A query of a user without bindings is a 200 without Contact.
func TestSIP_RG_RR_V_003(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.has(c.query(), "- Contact:")
	})
}

// A second contact stands beside the first.
func TestSIP_RG_RR_V_004(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.do(200, noExpires, first+" => "+first+";expires=300")
		a := c.do(200, first+" => Contact: "+second)
		c.lasts(a, "sip:a@192.0.2.1", 300)
		c.lasts(a, "sip:b@192.0.2.2", 600)
	})
}

// A refresh gives one binding new time.
func TestSIP_RG_RR_V_005(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.do(200)
		a := c.do(200, "Expires: 600 => Expires: 900")
		c.lasts(a, "sip:a@192.0.2.1", 900)
		if n := len(contacts(a)); n != 1 {
			t.Errorf("%d bindings in %q", n, a)
		}
	})
}

// expires=0 in a contact removes it, and no other.
func TestSIP_RG_RR_V_006(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.do(200, first+" => "+first+", "+second)
		if got := uris(c.do(200, first+" => "+first+";expires=0")); got != "sip:b@192.0.2.2" {
			t.Errorf("left: %s", got)
		}
	})
}

// Expires: 0 removes the contacts of the request.
func TestSIP_RG_RR_V_007(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.do(200, first+" => "+first+", "+second)
		if got := uris(c.do(200, "Expires: 600 => Expires: 0")); got != "sip:b@192.0.2.2" {
			t.Errorf("left: %s", got)
		}
	})
}

// "*" with Expires: 0 removes all.
func TestSIP_RG_RR_V_008(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.do(200, first+" => "+first+", "+second)
		c.has(c.do(200, first+" => Contact: *", "Expires: 600 => Expires: 0"), "- Contact:")
		c.has(c.query(), "- Contact:")
	})
}

// The expiry comes from the contact's parameter.
func TestSIP_RG_RR_V_009(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.lasts(c.do(200, noExpires, first+" => "+first+";expires=120"), "sip:a@192.0.2.1", 120)
	})
}

// The expiry comes from the Expires field.
func TestSIP_RG_RR_V_010(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.lasts(c.do(200, "Expires: 600 => Expires: 180"), "sip:a@192.0.2.1", 180)
	})
}

// The contact's parameter goes before the field.
func TestSIP_RG_RR_V_011(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.lasts(c.do(200, first+" => "+first+";expires=120"), "sip:a@192.0.2.1", 120)
	})
}

// Without either, the registrar chooses.
func TestSIP_RG_RR_V_012(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.lasts(c.do(200, noExpires), "sip:a@192.0.2.1", 3600)
	})
}

// The registrar may shorten what is asked for.
func TestSIP_RG_RR_V_013(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.lasts(c.do(200, "Expires: 600 => Expires: 4294967295"), "sip:a@192.0.2.1", 7200)
	})
}

// Too brief an expiry is refused with the least that is granted.
func TestSIP_RG_RR_V_014(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.has(c.do(423, "Expires: 600 => Expires: 59"), "Min-Expires: 60", "- Contact:")
		c.has(c.query(), "- Contact:")
	})
}

// The q of each contact is kept and told.
func TestSIP_RG_RR_V_015(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.do(200, first+" => "+first+";q=0.7, "+second+";q=0.25")
		c.has(c.query(), "<sip:a@192.0.2.1>;q=0.7;", "<sip:b@192.0.2.2>;q=0.25;")
	})
}

// Several contacts in one field, each with its own expiry.
func TestSIP_RG_RR_V_016(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		a := c.do(200, noExpires, first+" => "+first+";expires=120, "+second+";expires=240")
		c.lasts(a, "sip:a@192.0.2.1", 120)
		c.lasts(a, "sip:b@192.0.2.2", 240)
	})
}

// Several contacts in several fields, one added and one removed at once.
func TestSIP_RG_RR_V_017(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.do(200)
		if got := uris(c.do(200, first+" => "+first+";expires=0", "+ m: "+second)); got != "sip:b@192.0.2.2" {
			t.Errorf("left: %s", got)
		}
	})
}

// The same contact with another Call-ID is taken over, whatever its CSeq.
func TestSIP_RG_RR_V_018(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.cseq = 100
		c.do(200)
		c.callID, c.cseq = c.callID+"-restarted", 0
		a := c.do(200, "Expires: 600 => Expires: 900")
		c.lasts(a, "sip:a@192.0.2.1", 900)
		if n := len(contacts(a)); n != 1 {
			t.Errorf("%d bindings in %q", n, a)
		}
	})
}

// Without credentials there is a challenge, and no binding.
func TestSIP_RG_RR_V_019(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		a := c.send(c.register(), 401)
		challenge := field(a, "WWW-Authenticate")
		if parameter(challenge, "realm") != "example.test" || parameter(challenge, "nonce") == "" || parameter(challenge, "qop") != "auth" {
			t.Errorf("challenge %s", challenge)
		}
		c.has(a, "- Contact:", "- stale=true")
		c.has(c.query(), "- Contact:")
	})
}

// The right answer to the challenge is let in.
func TestSIP_RG_RR_V_020(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.login()
		c.lasts(c.send(c.register(), 200), "sip:a@192.0.2.1", 600)
	})
}

// A wrong password is challenged again, and binds nothing.
func TestSIP_RG_RR_V_021(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		right := c.user.Password
		c.login().user.Password = "wrong"
		c.has(c.send(c.register(), 401), "WWW-Authenticate: Digest ", "- stale=true", "- Contact:")
		c.user.Password = right
		c.has(c.query(), "- Contact:")
	})
}

// A user who is who he says, but may not change this address-of-record, is refused.
func TestSIP_RG_RR_V_022(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.do(403, "To: <sip:"+c.user.Name+"@ => To: <sip:u00000@")
		c.has(c.query(), "- Contact:")
	})
}

// A domain that is not ours.
func TestSIP_RG_RR_I_001(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.login()
		c.do(404, "REGISTER sip:example.test => REGISTER sip:elsewhere.test")
		c.do(404, "To: <sip:"+c.user.Name+"@example.test> => To: <sip:"+c.user.Name+"@elsewhere.test>")
		c.has(c.query(), "- Contact:")
	})
}

// "*" with an expiry other than 0, or without any.
func TestSIP_RG_RR_I_002(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.do(200)
		c.do(400, first+" => Contact: *")
		c.do(400, first+" => Contact: *", noExpires)
		c.lasts(c.query(), "sip:a@192.0.2.1", 600)
	})
}

// "*" beside another contact.
func TestSIP_RG_RR_I_003(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.do(200)
		c.do(400, first+" => Contact: *, "+second, "Expires: 600 => Expires: 0")
		if got := uris(c.query()); got != "sip:a@192.0.2.1" {
			t.Errorf("left: %s", got)
		}
	})
}

// An extension that is required and not supported.
func TestSIP_RG_RR_I_004(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.login()
		c.has(c.do(420, "+ Require: nothing-like-it"), "Unsupported: nothing-like-it", "- Contact:")
		c.has(c.query(), "- Contact:")
	})
}

// A lower CSeq of the same Call-ID.
func TestSIP_RG_RR_O_001(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.cseq = 10
		c.do(200)
		c.cseq = 5
		c.do(500, "Expires: 600 => Expires: 900")
		c.cseq = 6
		c.do(500, "Expires: 600 => Expires: 0")
		c.cseq = 20
		c.lasts(c.query(), "sip:a@192.0.2.1", 600)
	})
}

// An equal CSeq of the same Call-ID, which is no retransmission.
func TestSIP_RG_RR_O_002(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.do(200)
		c.cseq--
		c.do(500, "Expires: 600 => Expires: 900")
		c.lasts(c.query(), "sip:a@192.0.2.1", 600)
	})
}

// "*" out of order.
func TestSIP_RG_RR_O_003(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.cseq = 10
		c.do(200, first+" => "+first+", "+second)
		c.cseq = 5
		c.do(500, first+" => Contact: *", "Expires: 600 => Expires: 0")
		c.cseq = 20
		if got := uris(c.query()); got != "sip:a@192.0.2.1 sip:b@192.0.2.2" {
			t.Errorf("left: %s", got)
		}
	})
}
