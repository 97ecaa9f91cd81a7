package registrar

import "strings"

// Received is the address from which a binding's REGISTER came, as a URI, and whether
// its Contact names another one: the client is behind a NAT. The pool itself sends
// over the flow and never rewrites a Contact, since clients look for their own in the
// 200; this is for others who want to know. Behind a proxy (Path) there is nothing to tell.
func (b *Binding) Received() (uri string, differs bool) {
	if len(b.Path) > 0 || b.Flow.Remote == "" {
		return "", false
	}
	uri = "sip:" + b.Flow.Remote
	if b.Flow.Transport != "udp" {
		uri += ";transport=" + b.Flow.Transport
	}
	r, err := ParseURI(uri)
	if err != nil {
		return "", false
	}
	c, err := ParseURI(b.URI)
	if err != nil || c.Scheme == "tel" {
		return uri, true
	}
	port := c.Port
	if port == 0 {
		port = c.defaultPort()
	}
	transport, _ := c.Param("transport")
	if transport == "" {
		transport = "udp"
	}
	return uri, canonicalHost(c.Host) != canonicalHost(r.Host) || port != r.Port || !strings.EqualFold(transport, b.Flow.Transport)
}
