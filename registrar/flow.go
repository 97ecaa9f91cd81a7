package registrar

// Flow is the path by which a client reached the pool, and the only one by which
// the pool sends to it: its Contact's address is often wrong.
type Flow struct {
	FrontEnd  string `json:"frontend" cbor:"1,keyasint,omitempty"`
	Boot      string `json:"-" cbor:"2,keyasint,omitempty"`         // boot id of that Front End: a flow dies with its process
	Transport string `json:"transport" cbor:"3,keyasint,omitempty"` // udp, tcp, tls, ws, wss
	Local     string `json:"-" cbor:"4,keyasint,omitempty"`         // host:port the client sent to
	Remote    string `json:"remote" cbor:"5,keyasint,omitempty"`    // host:port the client sent from
	ID        uint64 `json:"-" cbor:"6,keyasint,omitempty"`         // number of the connection at that Front End; 0 for UDP
}

// Stream reports whether the flow is a connection, which can be seen to close.
func (f Flow) Stream() bool { return f.Transport != "" && f.Transport != "udp" }
