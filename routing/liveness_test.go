package routing

import (
	"strings"
	"testing"
	"time"
)

// at is a moment, in milliseconds after an arbitrary start.
func at(ms int) time.Time {
	return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(ms) * time.Millisecond)
}

func probe(ms int, o Outcome) Probe { return Probe{At: at(ms), Outcome: o} }

// watched is the evidence of a Front End that pulsed last at 10,000 ms; change alters it.
func watched(change func(e *Evidence)) Evidence {
	e := Evidence{
		Member:     Member{Name: "fe2", Boot: "b1", State: Up},
		MemberSeen: at(1_000),
		FirstSeen:  at(0),
		Pulse:      Pulse{At: at(10_000), Boot: "b1", State: Up},
		Ping:       probe(9_000, Answered),
	}
	if change != nil {
		change(&e)
	}
	return e
}

// TestJudge has the rows of the evidence table, and what lies between them.
func TestJudge(t *testing.T) {
	three := Self{Others: 2, Heard: 1} // of three, one is silent
	nobody := func(e *Evidence) {
		e.Ping, e.NobodySince = probe(10_020, NobodyThere), at(10_010)
	}
	silent := func(health Probe) func(e *Evidence) {
		return func(e *Evidence) {
			e.Ping, e.Health = probe(10_900, NoAnswer), health
		}
	}
	for _, row := range []struct {
		name    string
		e       Evidence
		s       Self
		now     int
		want    State
		boot    string // b1 if empty
		why     string // a part of it
		suspect bool
		health  bool
		again   int // 0: on new evidence
	}{
		// Its pulse.
		{name: "a fresh pulse", e: watched(nil), s: three, now: 10_050, want: Up, why: "pulse", again: 10_300},
		{name: "an answered ping in place of pulses", e: watched(func(e *Evidence) { e.Ping = probe(10_400, Answered) }),
			s: three, now: 10_500, want: Up, again: 10_700},
		{name: "its pulse says draining", e: watched(func(e *Evidence) { e.Pulse.State = Draining }),
			s: three, now: 10_050, want: Draining, why: "stopped", again: 10_300},
		{name: "its pulse says joining", e: watched(func(e *Evidence) { e.Member.State, e.Pulse.State = Down, Joining }),
			s: three, now: 10_050, want: Joining, again: 10_300},
		{name: "its last pulse says that it leaves", e: watched(func(e *Evidence) { e.Pulse.State = Down }),
			s: three, now: 10_050, want: Down},
		{name: "pulses under a new boot id", e: watched(func(e *Evidence) { e.Pulse.Boot = "b2" }),
			s: three, now: 10_050, want: Up, boot: "b2", why: "restarted", again: 10_300},
		{name: "a new one", e: watched(func(e *Evidence) { e.Member = Member{} }),
			s: three, now: 10_050, want: Up, again: 10_300},
		{name: "down in the placement, an older pulse", e: watched(func(e *Evidence) { e.Member.State, e.MemberSeen = Down, at(10_001) }),
			s: three, now: 10_050, want: Down},
		{name: "another boot in the placement, an older pulse", e: watched(func(e *Evidence) { e.Member.Boot, e.MemberSeen = "b2", at(10_001) }),
			s: three, now: 10_050, want: Up, boot: "b2", why: "placement", again: 10_300},
		{name: "down in the placement, and back", e: watched(func(e *Evidence) { e.Member.State, e.MemberSeen = Down, at(9_999) }),
			s: three, now: 10_050, want: Up, again: 10_300},

		// No responders, and its health port refuses: the process is gone. Down at once.
		{name: "nobody there, health unknown", e: watched(nobody), s: three, now: 10_021,
			want: Up, suspect: true, health: true, again: 10_121},
		{name: "nobody there, health refuses", e: watched(func(e *Evidence) { nobody(e); e.Health = probe(10_022, Refused) }),
			s: three, now: 10_022, want: Down, why: "gone"},
		{name: "the same of the other one of two", e: watched(func(e *Evidence) { nobody(e); e.Health = probe(10_022, Refused) }),
			s: Self{Others: 1}, now: 10_022, want: Down, why: "gone"},
		{name: "the same of two of three at once", e: watched(func(e *Evidence) { nobody(e); e.Health = probe(10_022, Refused) }),
			s: Self{Others: 2}, now: 10_022, want: Down, why: "gone"},
		{name: "health refused before, when it last restarted", e: watched(func(e *Evidence) { nobody(e); e.Health = probe(8_000, Refused) }),
			s: three, now: 10_022, want: Up, suspect: true, health: true, again: 10_122},
		{name: "nobody was there, and a pulse came since", e: watched(func(e *Evidence) {
			nobody(e)
			e.Health, e.Pulse.At = probe(10_022, Refused), at(10_030)
		}), s: three, now: 10_031, want: Up, again: 10_330},
		{name: "drained and gone", e: watched(func(e *Evidence) {
			nobody(e)
			e.Health, e.Pulse.State = probe(10_022, Refused), Draining
		}), s: three, now: 10_022, want: Down, why: "gone"},

		// No responders, health port answers: it lost the bus for a moment. Down after ReconnectGrace.
		{name: "lost the bus", e: watched(func(e *Evidence) { nobody(e); e.Health = probe(10_022, Answered) }),
			s: three, now: 10_030, want: Up, why: "lost the bus", suspect: true, again: 10_122},
		{name: "lost the bus, asked a while ago", e: watched(func(e *Evidence) { nobody(e); e.Health = probe(10_022, Answered) }),
			s: three, now: 11_009, want: Up, suspect: true, health: true, again: 11_010},
		{name: "lost the bus for the whole grace", e: watched(func(e *Evidence) { nobody(e); e.Health = probe(10_900, Answered) }),
			s: three, now: 11_010, want: Down, why: "1s"},
		{name: "nobody there, health port silent", e: watched(func(e *Evidence) { nobody(e); e.Health = probe(10_900, NoAnswer) }),
			s: three, now: 11_010, want: Down, why: "no answer"},

		// No pulse, no answer anywhere: down after DownAfter.
		{name: "three pulses missed", e: watched(nil), s: three, now: 10_300,
			want: Up, why: "300ms", suspect: true, health: true, again: 10_400},
		{name: "silent, not long enough", e: watched(silent(probe(10_950, NoAnswer))), s: three, now: 10_999,
			want: Up, suspect: true, again: 11_000},
		{name: "silent", e: watched(silent(probe(10_950, NoAnswer))), s: three, now: 11_000, want: Down, why: "no answer"},
		{name: "silent since the watch began", e: watched(func(e *Evidence) {
			e.Pulse, e.FirstSeen, e.Ping, e.Health = Pulse{}, at(10_000), probe(10_900, NoAnswer), probe(10_950, NoAnswer)
		}), s: three, now: 11_000, want: Down},
		{name: "a watch that has just begun", e: watched(func(e *Evidence) { e.Pulse, e.FirstSeen, e.Ping = Pulse{}, at(10_000), Probe{} }),
			s: three, now: 10_200, want: Up, why: "placement", again: 10_300},
		{name: "silent, its health port was not asked", e: watched(silent(Probe{})), s: three, now: 11_000,
			want: Up, suspect: true, health: true, again: 11_100},
		{name: "silent, and there is no health port to ask", e: watched(silent(Probe{})), s: three, now: 11_250, want: Down},
		{name: "silent, its health port answers", e: watched(silent(probe(10_950, Answered))), s: three, now: 11_000,
			want: Up, suspect: true, again: 11_050},
		{name: "silent for the grace too", e: watched(silent(probe(11_950, Answered))), s: three, now: 12_000, want: Down},

		// I hear fewer than half of the others: it is me.
		{name: "all silent", e: watched(silent(probe(10_950, NoAnswer))), s: Self{Others: 2}, now: 11_000,
			want: Up, why: "may be this front end", suspect: true, again: 11_050},
		{name: "all silent, one answers at its health port", e: watched(silent(probe(13_950, Answered))), s: Self{Others: 2}, now: 14_000,
			want: Up, suspect: true, again: 14_050},
		{name: "all silent, for long, by both ways", e: watched(silent(probe(12_950, NoAnswer))), s: Self{Others: 2}, now: 13_000, want: Down},
		{name: "the other one of two silent", e: watched(silent(probe(10_950, NoAnswer))), s: Self{Others: 1}, now: 11_000, want: Down},
		{name: "half of four heard", e: watched(silent(probe(10_950, NoAnswer))), s: Self{Others: 4, Heard: 2}, now: 11_000, want: Down},

		// Without the bus nothing is judged.
		{name: "no bus", e: watched(func(e *Evidence) { nobody(e); e.Health = probe(10_022, Refused) }),
			s: Self{Others: 2, BusLost: at(10_000)}, now: 12_000, want: Up, why: "no bus", suspect: true},

		{name: "down and quiet", e: watched(func(e *Evidence) { e.Member.State, e.MemberSeen = Down, at(10_001) }),
			s: three, now: 99_000, want: Down},
		{name: "never heard of", e: Evidence{FirstSeen: at(0)}, s: three, now: 10, want: Down},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := Judge(DefaultRules(), row.e, row.s, at(row.now))
			boot := row.boot
			if boot == "" && row.name != "never heard of" {
				boot = "b1"
			}
			var again time.Time
			if row.again != 0 {
				again = at(row.again)
			}
			if v.State != row.want || v.Boot != boot || v.Suspect != row.suspect || v.ProbeHealth != row.health || !v.Again.Equal(again) {
				t.Errorf("got %+v\nwant %s %s, suspect %v, health %v, again %v", v, row.want, boot, row.suspect, row.health, again)
			}
			if v.Why == "" || !strings.Contains(v.Why, row.why) {
				t.Errorf("why: %q, want %q in it", v.Why, row.why)
			}
			if !v.Again.IsZero() && !v.Again.After(at(row.now)) {
				t.Errorf("judge again at %v, which is not after %v", v.Again, at(row.now))
			}
		})
	}
}

// TestJudgeEnds: whatever the evidence, a Front End of which nothing more comes
// is judged down in the end, if the caller does as the verdicts say.
func TestJudgeEnds(t *testing.T) {
	r := DefaultRules()
	for _, health := range []Outcome{NotTried, Refused, NoAnswer} {
		for _, ping := range []Outcome{NoAnswer, NobodyThere} {
			for _, self := range []Self{{Others: 1}, {Others: 2}, {Others: 2, Heard: 1}} {
				e := watched(nil)
				now := at(10_001)
				v := Judge(r, e, self, now)
				for rounds := 0; v.State != Down; rounds++ {
					if self.Others == 2 && self.Heard == 0 && health == NotTried && ping == NoAnswer {
						break // without a health port a lonely one never knows: it waits for the bus to say nobody is there
					}
					if v.Again.IsZero() || rounds > 1000 {
						t.Fatalf("ping %v, health %v, %+v: stays at %+v", ping, health, self, v)
					}
					now = v.Again
					e.Ping = Probe{now, ping}
					if ping == NobodyThere && e.NobodySince.IsZero() {
						e.NobodySince = now
					}
					if v.ProbeHealth {
						e.Health = Probe{now, health}
					}
					v = Judge(r, e, self, now)
				}
				if now.After(at(14_000)) {
					t.Errorf("ping %v, health %v, %+v: down only at %v", ping, health, self, now)
				}
			}
		}
	}
}

func TestFence(t *testing.T) {
	lost := func(others, reached int, peerHasBus bool) Self {
		return Self{Others: others, PeersReached: reached, PeerHasBus: peerHasBus, BusLost: at(0)}
	}
	for _, row := range []struct {
		name string
		s    Self
		now  int
		want bool
	}{
		{"connected", Self{Others: 2}, 5_000, false},
		{"lost a moment ago", lost(2, 1, true), 999, false},
		{"another one has the bus", lost(2, 1, true), 1_000, true},
		{"nobody can be reached", lost(2, 0, false), 1_000, true},
		{"all in reach lost it", lost(2, 1, false), 60_000, false},
		{"alone in the pool", lost(0, 0, false), 60_000, false},
	} {
		if got, why := Fence(DefaultRules(), row.s, at(row.now)); got != row.want || why == "" {
			t.Errorf("%s: %v (%s)", row.name, got, why)
		}
	}
}

func TestReadyToForm(t *testing.T) {
	for _, row := range []struct {
		up, expect, now int
		want            bool
	}{
		{0, 3, 60_000, false},
		{1, 3, 9_999, false},
		{1, 3, 10_000, true},
		{3, 3, 0, true},
		{4, 3, 0, true},
		{1, 0, 0, true},
		{0, 0, 0, false},
	} {
		if got := ReadyToForm(DefaultRules(), row.up, row.expect, at(0), at(row.now)); got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
}
