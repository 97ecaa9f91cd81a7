package registrar

import (
	"strconv"
	"strings"
)

// refuse makes a final answer that changes nothing.
func refuse(status int, headers ...Header) *Reply {
	return &Reply{Status: status, Reason: reason(status), Headers: headers}
}

// reason is the phrase of a status that a registrar gives (RFC 3261 §21 and others).
func reason(status int) string {
	switch status {
	case 200:
		return "OK"
	case 400:
		return "Bad Request"
	case 401:
		return "Unauthorized"
	case 403:
		return "Forbidden"
	case 404:
		return "Not Found"
	case 420:
		return "Bad Extension"
	case 421:
		return "Extension Required"
	case 423:
		return "Interval Too Brief"
	case 439:
		return "First Hop Lacks Outbound Support"
	case 500:
		return "Server Internal Error"
	case 503:
		return "Service Unavailable"
	}
	return "Error"
}

// accept: §10.3 step 8. The 200 lists every binding with the time it has left.
func (w *work) accept(bindings []Binding) Reply {
	headers := make([]Header, 0, len(bindings)+4)
	gruus := w.usesGRUU()
	for i := range bindings {
		headers = append(headers, Header{"Contact", w.contactValue(bindings, i, gruus)})
	}
	if w.supports("path") { // RFC 3327 §5.3: only to those who know of it
		for _, p := range w.req.Path {
			headers = append(headers, Header{"Path", p})
		}
	}
	if w.usesOutbound() {
		headers = append(headers, Header{"Require", "outbound"})
		if t := w.policy.FlowTimer; t > 0 {
			headers = append(headers, Header{"Flow-Timer", itoa(seconds(t))})
		}
	}
	headers = append(headers, Header{"Date", w.now.Format("Mon, 02 Jan 2006 15:04:05 GMT")})
	return Reply{Status: 200, Reason: reason(200), Headers: headers}
}

// contactValue writes binding i as the client registered it, with what is left of its
// time, and with its GRUUs if they were asked for.
func (w *work) contactValue(bindings []Binding, i int, gruus bool) string {
	b := &bindings[i]
	v := make([]byte, 0, 64+len(b.URI)+len(b.Instance)+len(b.Params))
	v = append(v, '<')
	v = append(v, b.URI...)
	v = append(v, '>')
	if b.Q >= 0 {
		v = append(v, ";q="...)
		v = appendQ(v, b.Q)
	}
	if gruus && b.Generation != 0 {
		v = w.appendGRUUs(v, b, bindings)
	}
	if b.Instance != "" {
		v = append(v, `;+sip.instance="<`...)
		v = append(v, quotedText(b.Instance)...)
		v = append(v, `>"`...)
	}
	if b.RegID != 0 {
		v = append(v, ";reg-id="...)
		v = strconv.AppendUint(v, uint64(b.RegID), 10)
	}
	v = append(v, b.Params...)
	if w.policy != nil && w.policy.ShowReceived {
		if uri, differs := b.Received(); differs && !strings.Contains(lower(b.Params), ";received=") {
			v = append(append(append(v, `;received="`...), uri...), '"')
		}
	}
	v = append(v, ";expires="...)
	// A binding in its grace period is alive: never 0, which would mean the contrary.
	v = strconv.AppendInt(v, max(1, seconds(b.Expires.Sub(w.now))), 10)
	return string(v)
}

// appendQ writes thousandths as a qvalue, without trailing zeros.
func appendQ(v []byte, q int) []byte {
	if q >= 1000 {
		return append(v, '1')
	}
	v = append(v, '0')
	if q <= 0 {
		return v
	}
	v = append(v, '.', byte('0'+q/100))
	if q%100 != 0 {
		v = append(v, byte('0'+q/10%10))
	}
	if q%10 != 0 {
		v = append(v, byte('0'+q%10))
	}
	return v
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func join(list []string) string { return strings.Join(list, ", ") }
