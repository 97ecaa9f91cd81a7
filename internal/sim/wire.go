package sim

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// request is a REGISTER as a phone writes it.
type request struct {
	transport, via, branch string
	user, tag, callID      string
	cseq                   uint32
	contact                string // URI; "" asks for the bindings
	expires                int
	auth                   string // value of Authorization; "" has none
}

func (r request) bytes() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "REGISTER sip:%s SIP/2.0\r\n", domain)
	fmt.Fprintf(&b, "Via: SIP/2.0/%s %s;rport;branch=%s\r\n", strings.ToUpper(r.transport), r.via, r.branch)
	fmt.Fprintf(&b, "Max-Forwards: 70\r\nFrom: <sip:%s@%s>;tag=%s\r\nTo: <sip:%s@%s>\r\n", r.user, domain, r.tag, r.user, domain)
	fmt.Fprintf(&b, "Call-ID: %s\r\nCSeq: %d REGISTER\r\n", r.callID, r.cseq)
	if r.contact != "" {
		fmt.Fprintf(&b, "Contact: <%s>\r\nExpires: %d\r\n", r.contact, r.expires)
	}
	if r.auth != "" {
		fmt.Fprintf(&b, "Authorization: %s\r\n", r.auth)
	}
	b.WriteString("User-Agent: phone of the simulator\r\nContent-Length: 0\r\n\r\n")
	return []byte(b.String())
}

// response is what a phone understands of an answer.
type response struct {
	status     int
	callID     string
	cseq       uint32
	branch     string
	challenge  string
	retryAfter int // seconds
	contacts   map[string]int
}

var errNotResponse = errors.New("not a response")

// readResponse reads one complete response without a body.
func readResponse(text string) (response, error) {
	r := response{contacts: map[string]int{}}
	head, rest, _ := strings.Cut(text, "\r\n")
	if !strings.HasPrefix(head, "SIP/2.0 ") || len(head) < 11 {
		return r, errNotResponse
	}
	status, err := strconv.Atoi(head[8:11])
	if err != nil {
		return r, errNotResponse
	}
	r.status = status
	for line := range strings.SplitSeq(rest, "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		r.take(strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value))
	}
	if r.callID == "" || r.cseq == 0 || r.branch == "" {
		return r, errNotResponse
	}
	return r, nil
}

func (r *response) take(name, value string) {
	switch name {
	case "via":
		r.branch = param(value, "branch")
	case "call-id":
		r.callID = value
	case "cseq":
		number, _, _ := strings.Cut(value, " ")
		n, _ := strconv.ParseUint(number, 10, 32)
		r.cseq = uint32(n)
	case "www-authenticate":
		r.challenge = value
	case "retry-after":
		r.retryAfter, _ = strconv.Atoi(value)
	case "contact":
		for c := range strings.SplitSeq(value, ",") { // none of ours has a comma inside
			uri, params, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(c), "<"), ">")
			if seconds, err := strconv.Atoi(param(params, "expires")); ok && err == nil {
				r.contacts[uri] = seconds
			}
		}
	}
}

// param returns the value of ;name=value, "" if there is none.
func param(s, name string) string {
	for p := range strings.SplitSeq(s, ";") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(p), name+"="); ok {
			return v
		}
	}
	return ""
}

// digest answers challenges as a phone does (RFC 7616 §3.4, MD5 with qop=auth), and
// goes on using a nonce with a growing count.
type digest struct {
	realm, nonce string
	count        uint32
}

// challenged takes a challenge over; it reports false if that was no use before: the password is wrong.
func (d *digest) challenged(value string, answered bool) bool {
	if answered && !strings.Contains(value, "stale=true") && quotedParam(value, "nonce") == d.nonce {
		return false
	}
	d.realm, d.nonce, d.count = quotedParam(value, "realm"), quotedParam(value, "nonce"), 0
	return d.nonce != ""
}

// authorization is the value for one request, "" without a challenge.
func (d *digest) authorization(user string) string {
	if d.nonce == "" {
		return ""
	}
	d.count++
	uri, nc, cnonce := "sip:"+domain, fmt.Sprintf("%08x", d.count), fmt.Sprintf("c%d", d.count)
	answer := md5hex(md5hex(user+":"+d.realm+":"+password) + ":" + d.nonce + ":" + nc + ":" + cnonce + ":auth:" + md5hex("REGISTER:"+uri))
	return fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="%s", response="%s", algorithm=MD5, cnonce="%s", qop=auth, nc=%s`,
		user, d.realm, d.nonce, uri, answer, cnonce, nc)
}

func md5hex(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

func quotedParam(s, name string) string {
	_, after, ok := strings.Cut(s, name+`="`)
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(after, `"`)
	return value
}
