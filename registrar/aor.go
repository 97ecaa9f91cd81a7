package registrar

// AOR is an address-of-record in canonical form: "sip:alice@example.test" (RFC 3261 §10.3 step 5).
type AOR string
