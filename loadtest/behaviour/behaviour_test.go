package behaviour

import (
	"testing"
	"time"
)

func profile(t *testing.T, name string) *Behaviour {
	t.Helper()
	all, err := Profiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if b.Name == name {
			return b
		}
	}
	t.Fatalf("no profile %s", name)
	return nil
}

// The names that scenarios and documents use must exist.
func TestProfilesAreComplete(t *testing.T) {
	for _, name := range []string{"eager", "outbound", "linphone", "baresip", "pjsip", "pjsua", "jssip", "sipjs", "sipjs-sm", "twinkle", "sofia", "jami"} {
		profile(t, name)
	}
}

func TestReactPrefersTheExactCode(t *testing.T) {
	b := profile(t, "pjsip")
	for _, c := range []struct {
		status int
		word   string
		want   int
	}{{302, "", ReactNever}, {403, "", ReactNever}, {480, "", ReactRetry}, {503, "", ReactRetry}, {0, "timeout", ReactRetry}} {
		if got := b.React(c.status, c.word).Kind; got != c.want {
			t.Errorf("pjsip %d%s: %d, want %d", c.status, c.word, got, c.want)
		}
	}
	if r := profile(t, "linphone").React(0, "timeout"); r.Kind != ReactAfter || r.Wait.Min != 2*time.Second {
		t.Errorf("linphone timeout: %+v", r)
	}
}

func TestRefreshIn(t *testing.T) {
	for _, c := range []struct {
		name    string
		granted time.Duration
		r       float64
		want    time.Duration
	}{
		{"baresip", 100 * time.Second, 0.7, 90 * time.Second},
		{"pjsip", 60 * time.Second, 0, 55 * time.Second},
		{"pjsip", 5 * time.Second, 0, 5 * time.Second},
		{"jssip", 60 * time.Second, 0.9, 55 * time.Second},
		{"jssip", 100 * time.Second, 0, 50 * time.Second},
		{"sofia", 100 * time.Second, 0.5, 60 * time.Second},
	} {
		if got := profile(t, c.name).RefreshIn(c.granted, c.r).Round(time.Millisecond); got != c.want {
			t.Errorf("%s %v: %v, want %v", c.name, c.granted, got, c.want)
		}
	}
}

func TestSpansAreReadAndRefused(t *testing.T) {
	var s Span
	if err := s.UnmarshalText([]byte("30s..1m")); err != nil || s.Pick(0.5) != 45*time.Second {
		t.Errorf("%v %v", s, err)
	}
	for _, bad := range []string{"", "x", "2s..1s", "-1s", "1s..y"} {
		if err := s.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	var f Fraction
	for _, bad := range []string{"0", "1.1", "0.9..0.5", "x"} {
		if err := f.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("fraction %q was read", bad)
		}
	}
}
