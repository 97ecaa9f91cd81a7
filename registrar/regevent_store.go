package registrar

// storedSubscription is a Subscription as it stands in a record.
type storedSubscription struct {
	Tag       string   `cbor:"1,keyasint,omitempty"`
	CallID    string   `cbor:"2,keyasint,omitempty"`
	Local     string   `cbor:"3,keyasint,omitempty"`
	Remote    string   `cbor:"4,keyasint,omitempty"`
	RemoteTag string   `cbor:"5,keyasint,omitempty"`
	EventID   string   `cbor:"6,keyasint,omitempty"`
	Target    string   `cbor:"7,keyasint,omitempty"`
	Routes    []string `cbor:"8,keyasint,omitempty"`
	Flow      Flow     `cbor:"9,keyasint,omitempty"`
	CSeq      uint32   `cbor:"10,keyasint,omitempty"`
	Branch    string   `cbor:"11,keyasint,omitempty"`
	Notified  uint32   `cbor:"12,keyasint,omitempty"`
	Expires   int64    `cbor:"13,keyasint,omitempty"` // milliseconds
}

func storeSubscription(s *Subscription) storedSubscription {
	return storedSubscription{
		s.Tag, s.CallID, s.Local, s.Remote, s.RemoteTag, s.EventID, s.Target, s.Routes, s.Flow, s.CSeq, s.Branch, s.Notified, millis(s.Expires),
	}
}

func (w *storedSubscription) load() Subscription {
	return Subscription{
		w.Tag, w.CallID, w.Local, w.Remote, w.RemoteTag, w.EventID, w.Target, w.Routes, w.Flow, w.CSeq, w.Branch, w.Notified, timeOf(w.Expires),
	}
}

// HasSubscriptions reads from a stored record whether there are any, without decoding it.
func HasSubscriptions(data []byte) bool {
	return len(data) >= recordHeader && data[0] == recordVersion && data[1]&(subscribedFlag>>8) != 0
}
