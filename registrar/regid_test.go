package registrar

import "testing"

// RFC 5626 §6: a reg-id without an instance is passed over; the URI names the binding.
func TestRegIDWithoutInstance(t *testing.T) {
	p := newPhone(t)
	p.register("c", 1, "<sip:a@h>;reg-id=1")
	p.register("c", 2, "<sip:b@h>;reg-id=1") // not a replacement
	p.bound("sip:a@h", "sip:b@h")
	p.register("c", 3, "<sip:a@h>;reg-id=2") // not a second flow
	p.bound("sip:a@h", "sip:b@h")
	req := p.request("c", 4, "<sip:a@h>;reg-id=1")
	req.Supported = []string{"path", "outbound"}
	p.has(p.send(req, 200).Reply, "Require")
}
