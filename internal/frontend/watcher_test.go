package frontend

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcall/bus"
	"rollcall/internal/directory"
	"rollcall/registrar"
	"rollcall/routing"
)

// watcherPhone is a client that subscribes to registrations and answers NOTIFYs. It shares
// no code with what it tests.
type watcherPhone struct {
	t         *testing.T
	conn      net.Conn
	me, whom  string
	callID    string
	cseq      int
	toTag     string
	event     string
	answers   chan sipText
	notifies  chan notify
	status    atomic.Int32 // of its answers to NOTIFYs; 0: it does not answer
	failing   atomic.Int32 // so many are answered 500 first
	lastCSeq  int          // of the newest NOTIFY, and so is version
	version   int
	seenFirst bool
}

// sipText is a message taken apart.
type sipText struct {
	first  string
	header textproto.MIMEHeader
	body   []byte
}

// notify is a NOTIFY and its document.
type notify struct {
	sipText
	doc struct {
		Version      int    `xml:"version,attr"`
		State        string `xml:"state,attr"`
		Registration struct {
			AOR      string `xml:"aor,attr"`
			State    string `xml:"state,attr"`
			Contacts []struct {
				ID    string `xml:"id,attr"`
				State string `xml:"state,attr"`
				Event string `xml:"event,attr"`
				URI   string `xml:"uri"`
			} `xml:"contact"`
		} `xml:"registration"`
	}
}

// watcher makes a client of user me at an address, to watch whom.
func (p *realPool) watcher(me, whom, transport, address string) *watcherPhone {
	p.t.Helper()
	c, err := net.Dial(transport, address)
	if err != nil {
		p.t.Fatal(err)
	}
	w := &watcherPhone{t: p.t, conn: c, me: me, whom: whom, callID: fmt.Sprintf("w-%s-%s", me, c.LocalAddr()), event: "reg",
		answers: make(chan sipText, 64), notifies: make(chan notify, 256)}
	w.status.Store(200)
	done := make(chan struct{})
	go func() { defer close(done); w.read() }()
	p.t.Cleanup(func() { c.Close(); <-done })
	return w
}

// read takes messages until the connection is closed.
func (w *watcherPhone) read() {
	r := bufio.NewReader(w.conn)
	for {
		if _, packets := w.conn.(*net.UDPConn); packets {
			r.Reset(w.conn) // a datagram is a message
		}
		m, err := readSIP(r)
		if err != nil {
			return
		}
		if !strings.HasPrefix(m.first, "NOTIFY ") {
			if !strings.HasPrefix(m.first, "SIP/2.0 100") {
				w.answers <- m
			}
			continue
		}
		status := w.status.Load()
		if w.failing.Load() > 0 {
			status = 500
			w.failing.Add(-1)
		}
		if status != 0 {
			answer := fmt.Sprintf("SIP/2.0 %d Whatever\r\n", status)
			for _, name := range []string{"Via", "From", "To", "Call-Id", "Cseq"} {
				for _, v := range m.header[name] {
					answer += name + ": " + v + "\r\n"
				}
			}
			if _, err := w.conn.Write([]byte(answer + "Content-Length: 0\r\n\r\n")); err != nil {
				return
			}
		}
		n := notify{sipText: m}
		if err := xml.Unmarshal(m.body, &n.doc); err != nil {
			w.t.Errorf("a document that is no XML: %v\n%s", err, m.body)
		}
		w.notifies <- n
	}
}

func readSIP(r *bufio.Reader) (m sipText, err error) {
	tp := textproto.NewReader(r)
	if m.first, err = tp.ReadLine(); err != nil {
		return m, err
	}
	if m.header, err = tp.ReadMIMEHeader(); err != nil {
		return m, err
	}
	n, err := strconv.Atoi(m.header.Get("Content-Length"))
	if err != nil {
		return m, err
	}
	m.body = make([]byte, n)
	_, err = io.ReadFull(r, m.body)
	return m, err
}

// ask sends a SUBSCRIBE, answers a challenge, and returns the final response. extra
// are further header fields; one of those that are there anyway replaces it.
func (w *watcherPhone) ask(expires string, extra ...string) sipText {
	w.t.Helper()
	m := w.send(expires, "", extra...)
	if strings.HasPrefix(m.first, "SIP/2.0 401") {
		nonce := nonceIn.FindStringSubmatch(m.header.Get("Www-Authenticate"))[1]
		ha1, _ := registrar.HA1("MD5", w.me, "example.test", "secret")
		ha2, _ := registrar.HA1("MD5", "SUBSCRIBE", "sip", w.whom+"@example.test") // MD5(SUBSCRIBE:sip:whom@example.test)
		response, _ := registrar.HA1("MD5", ha1, nonce, "00000001:x:auth:"+ha2)
		m = w.send(expires, fmt.Sprintf("Authorization: Digest username=%q, realm=\"example.test\", nonce=%q, uri=\"sip:%s@example.test\", "+
			"response=%q, algorithm=MD5, qop=auth, nc=00000001, cnonce=\"x\"\r\n", w.me, nonce, w.whom, response), extra...)
	}
	return m
}

func (w *watcherPhone) send(expires, auth string, extra ...string) sipText {
	w.t.Helper()
	w.cseq++
	return w.exchange(w.text(expires, auth, extra...))
}

func (w *watcherPhone) text(expires, auth string, extra ...string) string {
	transport := strings.ToUpper(w.conn.LocalAddr().Network())
	to := fmt.Sprintf("<sip:%s@example.test>", w.whom)
	if w.toTag != "" {
		to += ";tag=" + w.toTag
	}
	fields := []string{
		fmt.Sprintf("Via: SIP/2.0/%s %s;rport;branch=z9hG4bK%s-%d", transport, w.conn.LocalAddr(), w.callID, w.cseq),
		"Max-Forwards: 70", fmt.Sprintf("From: <sip:%s@example.test>;tag=f", w.me), "To: " + to, "Call-ID: " + w.callID,
		fmt.Sprintf("CSeq: %d SUBSCRIBE", w.cseq), "Event: " + w.event, "Expires: " + expires, "Accept: application/reginfo+xml",
		fmt.Sprintf("Contact: <sip:%s@%s;transport=%s>", w.me, w.conn.LocalAddr(), strings.ToLower(transport)),
	}
	for _, x := range extra {
		name, _, _ := strings.Cut(x, ":")
		replaced := false
		for i := range fields {
			if strings.HasPrefix(fields[i], name+":") {
				fields[i], replaced = strings.TrimSuffix(x, "\r\n"), true
			}
		}
		if !replaced {
			fields = append(fields, strings.TrimSuffix(x, "\r\n"))
		}
	}
	text := fmt.Sprintf("SUBSCRIBE sip:%s@example.test SIP/2.0\r\n", w.whom)
	for _, f := range fields {
		if !strings.HasSuffix(f, ": -") { // left out
			text += f + "\r\n"
		}
	}
	return text + auth + "Content-Length: 0\r\n\r\n"
}

func (w *watcherPhone) exchange(text string) sipText {
	w.t.Helper()
	if _, err := w.conn.Write([]byte(text)); err != nil {
		w.t.Fatal(err)
	}
	select {
	case m := <-w.answers:
		return m
	case <-time.After(30 * time.Second):
		w.t.Fatalf("no answer to\n%s", text)
		return sipText{}
	}
}

// subscribe expects a 200 and takes its tag into the dialog.
func (w *watcherPhone) subscribe(expires string) {
	w.t.Helper()
	m := w.ask(expires)
	for deadline := time.Now().Add(10 * time.Second); strings.HasPrefix(m.first, "SIP/2.0 401") && time.Now().Before(deadline); m = w.ask(expires) {
		time.Sleep(10 * time.Millisecond) // the Front End may not have heard of a new user yet
	}
	if !strings.HasPrefix(m.first, "SIP/2.0 200 ") || m.header.Get("Expires") == "" || m.header.Get("Contact") == "" || m.header.Get("Allow-Events") != "reg" {
		w.t.Fatalf("SUBSCRIBE for %s: %s %v", expires, m.first, m.header)
	}
	_, tag, _ := strings.Cut(m.header.Get("To"), "tag=")
	if tag == "" || w.toTag != "" && w.toTag != tag {
		w.t.Fatalf("tag %q after %q", tag, w.toTag)
	}
	w.toTag = tag
}

// next waits for the next NOTIFY and holds it to the dialog and to the rules of its
// version. what is "state registration event ..." of its document, such as "partial active registered".
func (w *watcherPhone) next(what string) notify {
	w.t.Helper()
	n := w.after(what)
	if w.seenFirst && n.doc.Version != w.version+1 || !w.seenFirst && n.doc.Version != 0 {
		w.t.Fatalf("version %d after %d (%s)", n.doc.Version, w.version, what)
	}
	w.version, w.seenFirst = n.doc.Version, true
	return n
}

// after is next without the rule that no version is missing.
func (w *watcherPhone) after(what string) notify {
	w.t.Helper()
	var n notify
	deadline := time.After(20 * time.Second)
	for {
		select {
		case n = <-w.notifies:
		case <-deadline:
			w.t.Fatalf("no NOTIFY: %s", what)
		}
		cseq, _ := strconv.Atoi(strings.Fields(n.header.Get("Cseq"))[0])
		if cseq > w.lastCSeq {
			w.lastCSeq = cseq
			break
		} // else a retransmission
	}
	got := n.doc.State + " " + n.doc.Registration.State
	for _, c := range n.doc.Registration.Contacts {
		got += " " + c.Event
	}
	if got != what {
		w.t.Fatalf("%s: NOTIFY says %s\n%s", what, got, n.body)
	}
	_, from, _ := strings.Cut(n.header.Get("From"), "tag=")
	if n.header.Get("Call-Id") != w.callID || from != w.toTag || !strings.Contains(n.header.Get("To"), "tag=f") ||
		!strings.HasPrefix(n.header.Get("Event"), "reg") || n.header.Get("Content-Type") != "application/reginfo+xml" ||
		!strings.HasPrefix(n.first, "NOTIFY sip:"+w.me+"@"+w.conn.LocalAddr().String()) {
		w.t.Fatalf("a NOTIFY outside the dialog: %s %v", n.first, n.header)
	}
	if n.doc.Registration.AOR != "sip:"+w.whom+"@example.test" {
		w.t.Fatalf("registrations of %s", n.doc.Registration.AOR)
	}
	return n
}

// state holds the newest NOTIFY to a Subscription-State.
func (n notify) state(t *testing.T, prefix string) {
	t.Helper()
	if s := n.header.Get("Subscription-State"); !strings.HasPrefix(s, prefix) {
		t.Errorf("Subscription-State: %s, not %s", s, prefix)
	}
}

// stored returns a user's set as the log has it.
func (p *realPool) stored(u directory.User) registrar.Set {
	p.t.Helper()
	r, err := p.bus.Bindings().Last(p.t.Context(), string(u.Group), string(u.AOR))
	if err == bus.ErrNotFound {
		return registrar.Set{}
	}
	if err != nil {
		p.t.Fatal(err)
	}
	s, err := registrar.DecodeSet(bytes.Clone(r.Data))
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// awaitStored polls until a user's set satisfies ok.
func (p *realPool) awaitStored(u directory.User, what string, ok func(registrar.Set) bool) {
	p.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !ok(p.stored(u)); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("never: %s: %+v", what, p.stored(u))
		}
	}
}

func unwatched(s registrar.Set) bool { return len(s.Subscriptions) == 0 }

// usersOf provisions users until n of them have one primary, and returns those and it.
func (p *realPool) usersOf(n int) ([]string, []directory.User, routing.FrontEnd) {
	p.t.Helper()
	pl := p.placement()
	names, users := map[routing.FrontEnd][]string{}, map[routing.FrontEnd][]directory.User{}
	for i := 0; ; i++ {
		name := fmt.Sprintf("user%d", i)
		u := p.provision(name)
		fe := pl.Groups[u.Group].Primary
		names[fe], users[fe] = append(names[fe], name), append(users[fe], u)
		if len(names[fe]) == n {
			return names[fe], users[fe], fe
		}
	}
}
