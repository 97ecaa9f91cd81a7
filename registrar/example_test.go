package registrar_test

import (
	"fmt"
	"time"

	"rollcall/registrar"
)

// A REGISTER from header field values to the record that is stored.
func Example() {
	aor, err := registrar.ParseAOR("sip:%61lice@Example.test:5060;transport=tcp")
	if err != nil {
		fmt.Println(err)
		return
	}
	contacts, star, err := registrar.ParseContacts([]string{"<sip:alice@192.0.2.1:5062> ; expires = 120"})
	if err != nil {
		fmt.Println(err) // a 400
		return
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := registrar.Decide(registrar.Set{}, &registrar.Request{
		AOR: aor, From: aor, CallID: "a84b4c76e66710", CSeq: 1, Branch: "z9hG4bK1", Contacts: contacts, Star: star,
	}, now, registrar.DefaultPolicy())
	record, err := registrar.EncodeSet(d.Next)
	if err != nil {
		fmt.Println(err)
		return
	}
	n, first, _, _ := registrar.PeekSet(record)
	fmt.Println(aor, d.Write, d.Changes[0].Kind, d.Reply.Status, n, first.Sub(now))
	for _, h := range d.Reply.Headers {
		fmt.Printf("%s: %s\n", h.Name, h.Value)
	}
	// Output:
	// sip:alice@example.test true created 200 1 2m0s
	// Contact: <sip:alice@192.0.2.1:5062>;expires=120
	// Date: Sun, 01 Mar 2026 12:00:00 GMT
}
