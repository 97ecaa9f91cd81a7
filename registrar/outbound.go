package registrar

import "strings"

// checkOutbound: RFC 5626 §6, what a request with reg-id may not do.
func (w *work) checkOutbound() *Reply {
	alive, keyed := 0, false
	for i := range w.req.Contacts {
		c := &w.req.Contacts[i]
		if w.asked(c) > 0 {
			alive++
		}
		keyed = keyed || c.hasFlowKey()
	}
	if keyed && alive > 1 {
		return refuse(400)
	}
	if keyed && w.supports("outbound") && !w.firstHopKnowsOutbound() {
		return refuse(439)
	}
	return nil
}

// usesOutbound: the registration is an RFC 5626 one, and the answer must say so.
func (w *work) usesOutbound() bool {
	if !w.supports("outbound") {
		return false
	}
	for i := range w.req.Contacts {
		if w.req.Contacts[i].hasFlowKey() {
			return true
		}
	}
	return false
}

// firstHopKnowsOutbound: we are the first hop ourselves, or the edge proxy has
// marked its Path, which is the last one, with "ob" (RFC 5626 §5.1).
func (w *work) firstHopKnowsOutbound() bool {
	if len(w.req.Path) == 0 {
		return w.req.Vias <= 1
	}
	list, err := SplitList(w.req.Path[len(w.req.Path)-1])
	if err != nil || len(list) == 0 {
		return false
	}
	a, err := ParseAddress(list[len(list)-1])
	if err != nil || !strings.HasPrefix(a.URI, "sip") {
		return false
	}
	u, err := ParseURI(a.URI)
	if err != nil {
		return false
	}
	_, ob := u.Param("ob")
	return ob
}
