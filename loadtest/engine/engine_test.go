package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rollcall/loadtest/behaviour"
	"rollcall/loadtest/measure"
	"rollcall/loadtest/phone"
	"rollcall/loadtest/scripted"
)

// plainPhone reacts to everything after fixed times, so that every figure can be told beforehand.
func plainPhone() *behaviour.Behaviour {
	fixed := func(d time.Duration) *behaviour.Span { return &behaviour.Span{Min: d, Max: d} }
	return &behaviour.Behaviour{Name: "plain", FIN: fixed(2 * time.Second), RST: fixed(time.Second),
		Retry: []behaviour.Span{*fixed(3 * time.Second), *fixed(5 * time.Second)}, Refresh: behaviour.Fraction{Min: 0.5, Max: 0.5},
		Nonce: "reuse", RetryAfter: true, Unregister: true}
}

type rig struct {
	net *scripted.Network
	reg *scripted.Registrar
	e   *Engine
	ctx context.Context
}

func password(user string) string { return "pw-" + user }

// bubble runs n phones against r in virtual time; the first attempt of phone i is at i*step.
func bubble(t *testing.T, n int, step time.Duration, cfg phone.Config, r *scripted.Registrar, fn func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := scripted.NewNetwork()
		network.Put("10.9.9.9:5060", r)
		if len(cfg.Targets) == 0 {
			cfg.Targets = []string{"10.9.9.9:5060"}
		}
		cfg.Domain = "example.test"
		if cfg.Expires == 0 {
			cfg.Expires = 600
		}
		var phones []*phone.Phone
		for i := range n {
			user := fmt.Sprintf("u%d", i)
			phones = append(phones, phone.New(&cfg, i, user, password(user), 0, time.Duration(i)*step))
		}
		ctx, cancel := context.WithCancel(t.Context())
		e, err := New(Options{Phones: phones, Transport: cfg.Transport, Dialer: network, Start: time.Now(), Shards: 2})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { e.Run(ctx); close(ended) }()
		fn(&rig{net: network, reg: r, e: e, ctx: ctx})
		cancel()
		<-ended
		network.Wait()
	})
}

func total(d measure.Data) *measure.Phase { return d.Total() }

// A hundred phones lose their connections at 5 s by a reset and come back after one second, each at its own
// registrar delay: every gap, its percentiles, the attempts and the rates are known to the microsecond.
func TestGapsPercentilesAttemptsAndRatesAreExact(t *testing.T) {
	r := &scripted.Registrar{}
	r.Script = func(q scripted.Request) []scripted.Step {
		if q.Number == 1 {
			return []scripted.Step{{After: 20 * time.Millisecond, Status: 200}}
		}
		var i int
		_, _ = fmt.Sscanf(q.User, "u%d", &i)
		return []scripted.Step{{After: time.Duration(i+1) * time.Millisecond, Status: 200}}
	}
	bubble(t, 100, 10*time.Millisecond, phone.Config{Behaviour: plainPhone(), Transport: "tcp"}, r, func(g *rig) {
		time.Sleep(5 * time.Second)
		r.Drop(true)
		time.Sleep(3 * time.Second)
		d := g.e.Freeze()
		p := total(d)
		if p.Attempts != 100 || p.OK != 100 || p.ReAttempts != 100 || p.ReOK != 100 || p.Lost["rst"] != 100 || len(p.Failed) != 0 || p.Sent != 200 {
			t.Errorf("counted %+v", p)
		}
		var gaps []time.Duration
		for _, gap := range d.Gaps {
			want := time.Second + time.Duration(gap.Client+1)*time.Millisecond
			if gap.Back-gap.Lost != want || gap.Lost != 5*time.Second || gap.First != 6*time.Second || gap.Attempts != 1 || gap.Cause != "rst" {
				t.Errorf("gap %+v, want %v", gap, want)
			}
			gaps = append(gaps, gap.Back-gap.Lost)
		}
		if got, want := measure.Exact(gaps), (measure.Stats{Count: 100, Min: 1001, P50: 1050, P90: 1090, P99: 1099, P999: 1100, Max: 1100}); got != want {
			t.Errorf("gaps %+v, want %+v", got, want)
		}
		if got, want := p.Register.Stats(), (measure.Stats{Count: 100, Min: 20, P50: 20, P90: 20, P99: 20, P999: 20, Max: 20}); got != want {
			t.Errorf("register %+v, want %+v", got, want)
		}
		// First attempts from 0 to 990 ms, the last 200 at 1010 ms; the return from 6 s to 6.1 s.
		if got, want := p.First.Rate(p.OK), 100/1.010; got != want {
			t.Errorf("registration rate %v, want %v", got, want)
		}
		if got, want := p.Re.Rate(p.ReOK), 100/0.100; got != want {
			t.Errorf("re-registration rate %v, want %v", got, want)
		}
		bound := 0
		for i, b := range d.Series {
			bound += b.Bound
			if want := map[int]int{4: 49, 9: 99, 10: 100, 49: 100, 50: 0, 59: 0, 60: 99, 61: 100}; want[i] != bound && (i == 49 || i == 50 || i == 59 || i == 10) {
				t.Errorf("registered at %v: %d, want %d", time.Duration(i)*d.Width, bound, want[i])
			}
		}
		if bound != 100 {
			t.Errorf("registered at the end: %d", bound)
		}
	})
}

// Digest: one challenge at first, then the nonce is kept and counted, also over a reconnect.
func TestNonceIsReusedAndCounted(t *testing.T) {
	for _, algorithm := range []string{"MD5", "SHA-256", "SHA-512-256"} {
		r := &scripted.Registrar{Realm: "example.test", Algorithm: algorithm, Password: password, Delay: 10 * time.Millisecond, Expires: 60}
		bubble(t, 1, 0, phone.Config{Behaviour: plainPhone(), Transport: "tcp"}, r, func(g *rig) {
			time.Sleep(45 * time.Second) // one refresh at half of 60 s
			r.Drop(false)
			time.Sleep(5 * time.Second)
			p := total(g.e.Freeze())
			s := r.Stats()
			if s.Refused != 1 || s.BadCredentials != 0 || strings.Join(s.NCs, " ") != "00000001 00000002 00000003" {
				t.Errorf("%s: registrar saw %+v", algorithm, s)
			}
			if p.OK != 1 || p.ReOK != 2 || p.Responses["401"] != 1 || p.Responses["200"] != 3 || p.Register.Stats().Max != 20 || p.ReRegister.Stats().Max != 10 {
				t.Errorf("%s: %+v", algorithm, p)
			}
		})
	}
}

func TestWrongPasswordIsAFailureNotALoop(t *testing.T) {
	r := &scripted.Registrar{Realm: "example.test", Password: func(string) string { return "other" }}
	bubble(t, 1, 0, phone.Config{Behaviour: plainPhone(), Transport: "tcp"}, r, func(g *rig) {
		time.Sleep(time.Second)
		p := total(g.e.Freeze())
		if p.Failed["401 credentials"] != 1 || p.OK != 0 || p.Sent != 2 {
			t.Errorf("%+v", p)
		}
	})
}

// Over UDP lost REGISTERs are sent again after 0.5 and 1.5 s, and the time to the 200 counts from the first.
func TestLostREGISTERsAreRetransmitted(t *testing.T) {
	r := &scripted.Registrar{Script: func(q scripted.Request) []scripted.Step {
		if q.Number < 3 {
			return []scripted.Step{{}}
		}
		return []scripted.Step{{After: 30 * time.Millisecond, Status: 200}}
	}}
	bubble(t, 1, 0, phone.Config{Behaviour: plainPhone(), Transport: "udp"}, r, func(g *rig) {
		time.Sleep(10 * time.Second)
		p := total(g.e.Freeze())
		if p.Sent != 3 || p.Resent != 2 || p.OK != 1 || p.Register.Stats().Max != 1530 {
			t.Errorf("%+v %+v", p, p.Register.Stats())
		}
	})
}

// Answers that are not the one waited for are counted as what they are, and change nothing.
func TestOddAnswersAreCountedAsWhatTheyAre(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		name  string
		steps []scripted.Step
		odd   string
		ok    int
		fail  string
	}{
		{"duplicate 200", []scripted.Step{{Status: 200}, {After: 5 * ms, Status: 200}}, "duplicate", 1, ""},
		{"100 after the 200", []scripted.Step{{Status: 200}, {After: 5 * ms, Status: 100}}, "late", 1, ""},
		{"200 after timer F", []scripted.Step{{After: 33 * time.Second, Status: 200}}, "late", 0, "timeout"},
		{"foreign branch", []scripted.Step{{Status: 200, Branch: "z9hG4bKother"}, {After: 5 * ms, Status: 200}}, "stray", 1, ""},
		{"CSeq never sent", []scripted.Step{{Status: 200, CSeq: 77}, {After: 5 * ms, Status: 200}}, "stray", 1, ""},
		{"no SIP", []scripted.Step{{Raw: "SIP/2.0 twohundred\r\n\r\n"}, {After: 5 * ms, Status: 200}}, "malformed", 1, ""},
		{"200 without the contact", []scripted.Step{{Status: 200, NoList: true}}, "not-listed", 0, "not-listed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &scripted.Registrar{Script: func(q scripted.Request) []scripted.Step {
				if q.CSeq == 1 {
					if q.Number > 1 {
						return []scripted.Step{{}} // a retransmission
					}
					return c.steps
				}
				return nil
			}}
			bubble(t, 1, 0, phone.Config{Behaviour: plainPhone(), Transport: "udp"}, r, func(g *rig) {
				time.Sleep(2 * time.Second)
				if c.fail == "timeout" {
					time.Sleep(32 * time.Second)
				}
				p := total(g.e.Freeze())
				if p.Odd[c.odd] != 1 || len(p.Odd) != 1 || p.OK != c.ok {
					t.Errorf("odd %v, ok %d", p.Odd, p.OK)
				}
				if c.fail != "" && p.Failed[c.fail] != 1 || c.fail == "" && len(p.Failed) != 0 {
					t.Errorf("failed %v, want one %q", p.Failed, c.fail)
				}
			})
		})
	}
}

// Retry-After and 423 are honoured; the second failure in a row waits for the second time of the list.
func TestRefusalsAreWaitedOut(t *testing.T) {
	r := &scripted.Registrar{Script: func(q scripted.Request) []scripted.Step {
		switch q.Number {
		case 1:
			return []scripted.Step{{Status: 503, Fields: []string{"Retry-After: 7"}}}
		case 2:
			return []scripted.Step{{Status: 500}}
		case 3:
			return []scripted.Step{{Status: 423, Fields: []string{"Min-Expires: 900"}}}
		}
		return nil
	}}
	bubble(t, 1, 0, phone.Config{Behaviour: plainPhone(), Transport: "tcp"}, r, func(g *rig) {
		time.Sleep(12*time.Second - time.Millisecond)
		if l := g.e.Live(); l.OK != 0 || l.States[phone.Waiting] != 1 {
			t.Errorf("before 7 s + 5 s: %+v", l)
		}
		time.Sleep(2 * time.Millisecond)
		p := total(g.e.Freeze())
		if p.OK != 1 || p.Failed["503"] != 1 || p.Failed["500"] != 1 || p.Responses["423"] != 1 || p.Attempts != 3 {
			t.Errorf("%+v", p)
		}
	})
}

// A connectionless phone whose server is taken away counts from that moment to its next 200; a 200 that
// answers what was sent before does not end the gap.
func TestUDPGapCountsFromTheEvent(t *testing.T) {
	r := &scripted.Registrar{Expires: 20, Delay: 200 * time.Millisecond}
	bubble(t, 2, 0, phone.Config{Behaviour: plainPhone(), Transport: "udp"}, r, func(g *rig) {
		time.Sleep(4 * time.Second)
		g.e.Mark(map[int]bool{1: true}, 4*time.Second)
		time.Sleep(7 * time.Second) // the refresh is at 10.2 s
		d := g.e.Freeze()
		if len(d.Gaps) != 1 {
			t.Fatalf("gaps %+v", d.Gaps)
		}
		want := phone.Gap{Client: 1, Cause: "server", Lost: 4 * time.Second, First: 10200 * time.Millisecond, Back: 10400 * time.Millisecond, Attempts: 1}
		if d.Gaps[0] != want {
			t.Errorf("gap %+v, want %+v", d.Gaps[0], want)
		}
	})
	bubble(t, 1, 0, phone.Config{Behaviour: plainPhone(), Transport: "udp"}, r, func(g *rig) {
		time.Sleep(10300 * time.Millisecond)
		g.e.Mark(nil, 10300*time.Millisecond) // the refresh of 10.2 s is in flight
		time.Sleep(2 * time.Second)
		d := g.e.Freeze()
		if len(d.Gaps) != 1 || d.Gaps[0].Back != phone.Never || d.Gaps[0].First != phone.Never {
			t.Errorf("a 200 to a REGISTER of before the loss ended the gap: %+v", d.Gaps)
		}
	})
}

// A registrar that hears and says nothing: the refresh runs into timer F, and the gap counts from its first REGISTER.
func TestFrozenRegistrarIsNoticedAtTheRefresh(t *testing.T) {
	r := &scripted.Registrar{Expires: 60}
	bubble(t, 1, 0, phone.Config{Behaviour: plainPhone(), Transport: "tcp"}, r, func(g *rig) {
		time.Sleep(10 * time.Second)
		r.Freeze(true)
		time.Sleep(50 * time.Second) // refresh at 30 s, timer F at 62 s
		r.Freeze(false)
		time.Sleep(10 * time.Second) // the binding lapses at 60 s, the attempt ends at 62 s, the next one is 3 s later
		d := g.e.Freeze()
		if len(d.Gaps) != 1 || d.Gaps[0].Cause != "expired" || d.Gaps[0].Lost != 60*time.Second || d.Gaps[0].Back != 65*time.Second {
			t.Errorf("%+v", d.Gaps)
		}
	})
}

// The next address is tried at once when the first refuses; both phones end at the second registrar.
func TestRefusedConnectionGoesToTheNextAddress(t *testing.T) {
	b := plainPhone()
	b.RefusedNext = true
	r := &scripted.Registrar{}
	bubble(t, 2, 0, phone.Config{Behaviour: b, Transport: "tcp", Targets: []string{"10.9.9.8:5060", "10.9.9.9:5060"}}, r, func(g *rig) {
		time.Sleep(time.Millisecond)
		p := total(g.e.Freeze())
		if p.OK != 2 || p.ConnectFail["refused"] != 2 || p.Attempts != 2 || len(p.Failed) != 0 {
			t.Errorf("%+v", p)
		}
	})
}

// A redirect is followed only by those who do, and only while they show no credentials.
func TestRedirect(t *testing.T) {
	other := &scripted.Registrar{}
	for _, c := range []struct {
		follow string
		want   int
	}{{"", 0}, {"initial", 1}} {
		b := plainPhone()
		b.Follow3xx = c.follow
		b.On = map[string]behaviour.Reaction{"3xx": {Kind: behaviour.ReactNever}}
		r := &scripted.Registrar{Script: func(scripted.Request) []scripted.Step {
			return []scripted.Step{{Status: 302, Fields: []string{"Contact: <sip:10.9.9.7:5060;transport=tcp>"}}}
		}}
		bubble(t, 1, 0, phone.Config{Behaviour: b, Transport: "tcp"}, r, func(g *rig) {
			g.net.Put("10.9.9.7:5060", other)
			time.Sleep(time.Second)
			l := g.e.Live()
			if l.OK != c.want || l.States[phone.Parked] != 1-c.want {
				t.Errorf("follow_3xx %q: %+v", c.follow, l)
			}
		})
	}
}

// Cutting half of the phones cuts half of them; quitting unregisters all.
func TestCutAndQuit(t *testing.T) {
	r := &scripted.Registrar{}
	bubble(t, 200, 0, phone.Config{Behaviour: plainPhone(), Transport: "tcp"}, r, func(g *rig) {
		time.Sleep(time.Second)
		g.e.Cut(0.5)
		synctest.Wait()
		if l := g.e.Live(); l.Bound != 100 || l.Gaps != 100 || r.Conns() != 100 {
			t.Errorf("after the cut: %+v, %d connections", l, r.Conns())
		}
		time.Sleep(2 * time.Second)
		d := g.e.Freeze()
		if len(d.Gaps) != 100 || d.Gaps[0].Cause != "cut" || d.Gaps[0].Back-d.Gaps[0].Lost != time.Second {
			t.Errorf("%d gaps, %+v", len(d.Gaps), d.Gaps[:1])
		}
		g.e.Quit(1000)
		g.e.Drain(g.ctx, time.Second)
		if l := g.e.Live(); l.States[phone.Off] != 200 || r.Stats().Removed != 200 {
			t.Errorf("after quitting: %+v, %d removed", l, r.Stats().Removed)
		}
	})
}

// Requests of the registrar are answered, pings too, and a phone that misses its pong comes back.
func TestRequestsAndKeepAlives(t *testing.T) {
	b := plainPhone()
	b.KeepAliveStream = &behaviour.Span{Min: 10 * time.Second, Max: 10 * time.Second}
	b.PongTimeout = time.Second
	options := "OPTIONS sip:u0@10.0.0.1 SIP/2.0\r\nVia: SIP/2.0/TCP 10.9.9.9;branch=z9hG4bKx\r\nFrom: <sip:r@x>;tag=1\r\nTo: <sip:u0@x>\r\nCall-ID: o\r\nCSeq: 1 OPTIONS\r\n\r\n"
	r := &scripted.Registrar{Script: func(q scripted.Request) []scripted.Step {
		return []scripted.Step{{Status: 200}, {After: time.Second, Raw: options + "\r\n\r\n"}}
	}}
	bubble(t, 1, 0, phone.Config{Behaviour: b, Transport: "tcp"}, r, func(g *rig) {
		time.Sleep(25 * time.Second)
		p := total(g.e.Freeze())
		if s := r.Stats(); p.Requests["OPTIONS"] != 1 || s.Answers != 1 || s.Pings != 2 || len(p.Lost) != 0 {
			t.Errorf("%+v, registrar saw %+v", p, s)
		}
	})
}
