package scripted

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"rollcall/loadtest/digest"
	"rollcall/loadtest/link"
	"rollcall/loadtest/sipwire"
)

// Step is one thing done in answer to a request.
type Step struct {
	After  time.Duration // since the request came
	Status int           // 0: no answer; then Raw or Close
	Fields []string      // further header fields
	Raw    string        // bytes instead of an answer
	Branch string        // instead of the request's, in the answer
	CSeq   uint32        // instead of the request's; 0: the request's
	NoList bool          // a 200 that lists no contact
	Close  string        // fin or rst, after the answer
}

// Request as a script sees it.
type Request struct {
	*sipwire.Message
	User   string
	Number int // of this user's REGISTERs, from 1
	At     time.Duration
}

// Registrar answers as its script says. Set its fields before use.
type Registrar struct {
	Realm     string // "" asks for no credentials
	Algorithm string // of the challenge; MD5 when empty
	Password  func(user string) string
	Expires   int // granted at most; 0: as asked
	Delay     time.Duration
	// Script says what to do, or nil for what a registrar does.
	Script func(Request) []Step

	mu     sync.Mutex
	start  time.Time
	count  map[string]int
	nonces map[string]string // last nc of each nonce
	conns  map[link.Conn]bool
	Seen   Seen
	frozen bool
}

// Seen counts what came; read it when the registrar is quiet.
type Seen struct {
	Registers, Accepted, Refused, BadCredentials, Pings, Removed, Answers int
	NCs                                                                   []string
}

// Stats returns what was seen.
func (r *Registrar) Stats() Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.Seen
	s.NCs = append([]string(nil), s.NCs...)
	return s
}

// Freeze lets the registrar hear and not answer, as a stopped process does.
func (r *Registrar) Freeze(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = on
}

// Drop ends all its connections, with a reset or in order.
func (r *Registrar) Drop(reset bool) {
	r.mu.Lock()
	conns := make([]link.Conn, 0, len(r.conns))
	for c := range r.conns {
		conns = append(conns, c)
	}
	r.mu.Unlock()
	for _, c := range conns {
		end(c, reset)
	}
}

// Conns is the number of open connections.
func (r *Registrar) Conns() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns)
}

func end(c link.Conn, reset bool) {
	if reset {
		c.Reset()
	} else {
		_ = c.Close()
	}
}

// Serve handles one connection until it ends.
func (r *Registrar) Serve(c link.Conn) {
	r.mu.Lock()
	if r.conns == nil {
		r.conns, r.count, r.nonces, r.start = map[link.Conn]bool{}, map[string]int{}, map[string]string{}, time.Now()
	}
	r.conns[c] = true
	r.mu.Unlock()
	var later sync.WaitGroup
	_ = link.Read(c, func(p link.Piece) bool { // its error is the end of the connection
		r.piece(c, p, &later)
		return true
	})
	_ = c.Close()
	later.Wait()
	r.mu.Lock()
	delete(r.conns, c)
	r.mu.Unlock()
}

func (r *Registrar) piece(c link.Conn, p link.Piece, later *sync.WaitGroup) {
	switch {
	case p.Kind == sipwire.Ping:
		r.mu.Lock()
		r.Seen.Pings++
		r.mu.Unlock()
		_, _ = c.Write([]byte("\r\n"))
	case p.Kind != sipwire.Complete || p.Err != nil:
	case p.Message.Status != 0:
		r.mu.Lock()
		r.Seen.Answers++
		r.mu.Unlock()
	default:
		m := p.Message
		for _, s := range r.steps(&m) {
			if s.After == 0 {
				r.do(c, &m, s)
				continue
			}
			later.Go(func() {
				time.Sleep(s.After)
				r.do(c, &m, s)
			})
		}
	}
}

// steps asks the script, or does what a registrar does.
func (r *Registrar) steps(m *sipwire.Message) []Step {
	r.mu.Lock()
	defer r.mu.Unlock()
	user := between(m.To, "sip:", "@")
	r.Seen.Registers++
	r.count[user]++
	if r.frozen {
		return nil
	}
	if r.Script != nil {
		if s := r.Script(Request{m, user, r.count[user], time.Since(r.start)}); s != nil {
			return s
		}
	}
	return []Step{r.plain(m, user)}
}

func (r *Registrar) plain(m *sipwire.Message, user string) Step {
	s := Step{After: r.Delay, Status: 200}
	if r.Realm != "" && !r.credentials(m, user) {
		r.Seen.Refused++
		algorithm := r.Algorithm
		if algorithm == "" {
			algorithm = "MD5"
		}
		nonce := fmt.Sprintf("n%d", r.Seen.Registers)
		r.nonces[nonce] = ""
		s.Status = 401
		s.Fields = []string{fmt.Sprintf(`WWW-Authenticate: Digest realm="%s", nonce="%s", qop="auth", algorithm=%s`, r.Realm, nonce, algorithm)}
		return s
	}
	r.Seen.Accepted++
	return s
}

// credentials checks an Authorization from first principles (RFC 7616 §3.4.1).
func (r *Registrar) credentials(m *sipwire.Message, user string) bool {
	if m.Authorization == "" {
		return false
	}
	p := digest.Params(m.Authorization)
	last, known := r.nonces[p["nonce"]]
	if !known || p["nc"] <= last && p["nc"] != "00000001" {
		return false
	}
	sum := func(s string) string { h := md5.Sum([]byte(s)); return hex.EncodeToString(h[:]) }
	switch p["algorithm"] {
	case "SHA-256":
		sum = func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }
	case "SHA-512-256":
		sum = func(s string) string { h := sha512.Sum512_256([]byte(s)); return hex.EncodeToString(h[:]) }
	}
	ha1 := sum(user + ":" + r.Realm + ":" + r.Password(user))
	ha2 := sum("REGISTER:" + m.URI)
	want := sum(strings.Join([]string{ha1, p["nonce"], p["nc"], p["cnonce"], p["qop"], ha2}, ":"))
	if p["response"] != want || p["username"] != user {
		r.Seen.BadCredentials++
		return false
	}
	r.nonces[p["nonce"]] = p["nc"]
	r.Seen.NCs = append(r.Seen.NCs, p["nc"])
	return true
}

// do carries one step out.
func (r *Registrar) do(c link.Conn, m *sipwire.Message, s Step) {
	if s.Raw != "" {
		_, _ = c.Write([]byte(s.Raw))
	}
	if s.Status != 0 {
		answer := *m
		if s.Branch != "" {
			answer.Vias = []string{strings.Replace(m.Vias[0], m.Branch, s.Branch, 1)}
		}
		if s.CSeq != 0 {
			answer.CSeq = s.CSeq
		}
		fields := s.Fields
		if s.Status == 200 && !s.NoList {
			fields = append(fields, r.list(m)...)
		}
		_, _ = c.Write(sipwire.AppendAnswer(nil, &answer, s.Status, "Scripted", "srv", fields...))
	}
	if s.Close != "" {
		end(c, s.Close == "rst")
	}
}

// list is the Contact of a 200.
func (r *Registrar) list(m *sipwire.Message) []string {
	if len(m.Contacts) == 0 {
		return nil
	}
	e := max(m.Expires, m.Contacts[0].Expires)
	if e == 0 {
		r.mu.Lock()
		r.Seen.Removed++
		r.mu.Unlock()
		return nil
	}
	if r.Expires > 0 {
		e = min(e, r.Expires)
	}
	return []string{fmt.Sprintf("Contact: <%s>;expires=%d", m.Contacts[0].URI, e)}
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}
