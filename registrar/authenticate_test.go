package registrar

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// realmUsers has alice and bob, provisioned with all algorithms.
func realmUsers(t testing.TB) func(AOR) (map[string]string, bool) {
	t.Helper()
	users := map[AOR]map[string]string{}
	for user, password := range map[AOR]string{"sip:alice@example.test": "secret", "sip:bob@example.test": "pass2"} {
		ha1, err := HA1s([]string{MD5, SHA256, SHA512256}, user, "example.test", password)
		if err != nil {
			t.Fatal(err)
		}
		users[user] = ha1
	}
	return func(a AOR) (map[string]string, bool) { ha1, ok := users[a]; return ha1, ok }
}

// doorman is an Authenticator with what a client sees of it.
type doorman struct {
	*phone
	a    *Authenticator
	find func(AOR) (map[string]string, bool)
}

func newDoorman(t *testing.T) *doorman {
	return &doorman{newPhone(t), &Authenticator{Key: []byte("0123456789abcdef0123456789abcdef")}, realmUsers(t)}
}

// challenged returns the parameters of a 401's n-th challenge.
func (d *doorman) challenged(r Reply) map[string]string {
	d.t.Helper()
	list := values(r, "WWW-Authenticate")
	if r.Status != 401 || len(list) == 0 {
		d.t.Fatalf("no challenge: %+v", r)
	}
	params := map[string]string{}
	for part := range strings.SplitSeq(strings.TrimPrefix(list[0], "Digest "), ", ") {
		name, value, _ := strings.Cut(part, "=")
		params[name] = strings.Trim(value, `"`)
	}
	return params
}

// try authenticates, and on success registers, so that the nonce is remembered.
func (d *doorman) try(req *Request) (Reply, bool) {
	d.t.Helper()
	_, use, reply, ok := d.a.AuthenticateWith(d.set, req, d.find, d.now)
	if ok {
		req.Nonce = use
		d.send(req, 200)
	}
	return reply, ok
}

func (d *doorman) nonce() string {
	d.t.Helper()
	reply, ok := d.try(d.request("c", 1, "<sip:a@h>"))
	if ok {
		d.t.Fatal("let in without credentials")
	}
	return d.challenged(reply)["nonce"]
}

// attempt answers as alice with her password.
func (d *doorman) attempt(cseq uint32, nonce, algorithm, qop string, nc int) (Reply, bool) {
	d.t.Helper()
	req := d.request("c", cseq, "<sip:a@h>")
	req.Body = []byte("body")
	req.Authorization = []string{answer(d.t, "alice", "secret", algorithm, nonce, qop, nc, req)}
	return d.try(req)
}

func TestChallenge(t *testing.T) {
	d := newDoorman(t)
	reply, _ := d.try(d.request("c", 1, "<sip:a@h>"))
	if got := values(reply, "WWW-Authenticate"); len(got) != 1 {
		t.Errorf("%q: want MD5 alone by default", got)
	}
	c := d.challenged(reply)
	if c["realm"] != "example.test" || c["algorithm"] != "MD5" || c["qop"] != "auth" || c["stale"] != "" || c["opaque"] != "" {
		t.Errorf("%v", c)
	}
	d.a.Algorithms, d.a.Opaque, d.a.Domain, d.a.Realm = []string{SHA256, MD5}, "o", "sip:example.test", `a"b`
	reply, _ = d.try(d.request("c", 1, "<sip:a@h>"))
	got := values(reply, "WWW-Authenticate")
	if len(got) != 2 || !strings.Contains(got[0], "algorithm=SHA-256,") || !strings.Contains(got[1], "algorithm=MD5,") ||
		!strings.Contains(got[0], `realm="a\"b"`) || !strings.Contains(got[0], `opaque="o"`) || !strings.Contains(got[0], `domain="sip:example.test"`) {
		t.Errorf("%q", got)
	}
}

func TestAuthenticate(t *testing.T) {
	for _, algorithm := range []string{"", MD5, SHA256, SHA512256, "MD5-sess", "SHA-256-sess"} {
		for _, qop := range []string{"auth", "auth-int"} {
			t.Run(algorithm+" "+qop, func(t *testing.T) {
				d := newDoorman(t)
				d.a.QOP, d.a.Algorithms = []string{"auth", "auth-int"}, []string{algorithm}
				if algorithm == "" {
					d.a.Algorithms = nil
				}
				if reply, ok := d.attempt(2, d.nonce(), algorithm, qop, 1); !ok {
					t.Errorf("%+v", reply)
				}
				req := d.request("c", 3, "<sip:a@h>")
				req.Authorization = []string{answer(t, "alice", "wrong", algorithm, d.nonce(), qop, 1, req)}
				reply, ok := d.try(req)
				if ok || d.challenged(reply)["stale"] != "" {
					t.Errorf("wrong password: %v, %+v", ok, reply)
				}
			})
		}
	}
	t.Run("an algorithm that is not offered", func(t *testing.T) {
		d := newDoorman(t)
		if _, ok := d.attempt(2, d.nonce(), SHA256, "auth", 1); ok {
			t.Error("let in")
		}
		if _, ok := d.attempt(2, d.nonce(), MD5, "auth-int", 1); ok {
			t.Error("qop not offered, let in")
		}
	})
	t.Run("without qop", func(t *testing.T) {
		d := newDoorman(t)
		if _, ok := d.attempt(2, d.nonce(), MD5, "", 1); ok {
			t.Error("let in by default")
		}
		d.a.AllowNoQOP = true
		n := d.nonce()
		if reply, ok := d.attempt(2, n, MD5, "", 1); !ok {
			t.Errorf("%+v", reply)
		}
		reply, ok := d.attempt(3, n, MD5, "", 1)
		if ok || d.challenged(reply)["stale"] != "true" {
			t.Errorf("a nonce without count is good for one request: %+v", reply)
		}
	})
	t.Run("changed body under auth-int", func(t *testing.T) {
		d := newDoorman(t)
		d.a.QOP = []string{"auth-int"}
		req := d.request("c", 2, "<sip:a@h>")
		req.Authorization = []string{answer(t, "alice", "secret", MD5, d.nonce(), "auth-int", 1, req)}
		req.Body = []byte("changed")
		if _, ok := d.try(req); ok {
			t.Error("let in")
		}
	})
}

func TestAuthenticateUsernames(t *testing.T) {
	d := newDoorman(t)
	for i, c := range []struct {
		username, password string
		ok                 bool
	}{
		{"alice", "secret", true},
		{"alice@example.test", "secret", true},
		{"alice@EXAMPLE.test", "secret", false}, // the HA1 is of another string
		{"alice@elsewhere.test", "secret", false},
		{"Alice", "secret", false},
		{"", "secret", false},
		{"nobody", "secret", false},
	} {
		req := d.request("c", uint32(i+2), "<sip:a@h>")
		req.Authorization = []string{answer(t, c.username, c.password, MD5, d.nonce(), "auth", 1, req)}
		if reply, ok := d.try(req); ok != c.ok || (!ok && reply.Status != 401) {
			t.Errorf("%s: %v, %+v", c.username, ok, reply)
		}
	}
}

// An unknown user gets the very same answer as a wrong password, the nonce apart.
func TestUnknownUserLooksLikeWrongPassword(t *testing.T) {
	d := newDoorman(t)
	d.a.Rand = strings.NewReader(strings.Repeat("12345678", 10))
	var replies []string
	for _, user := range []string{"alice", "nobody"} {
		req := d.request("c", 2, "<sip:a@h>")
		req.AOR = aorOf(user, "example.test")
		req.Authorization = []string{answer(t, user, "wrong", MD5, d.nonce(), "auth", 1, req)}
		reply, ok := d.try(req)
		if ok {
			t.Fatal("let in")
		}
		replies = append(replies, values(reply, "WWW-Authenticate")[0])
	}
	if replies[0] != replies[1] {
		t.Errorf("%s\n%s", replies[0], replies[1])
	}
}

func TestCase34BobForAlice(t *testing.T) {
	d := newDoorman(t)
	req := d.request("c", 2, "<sip:a@h>")
	req.Authorization = []string{answer(t, "bob", "pass2", MD5, d.nonce(), "auth", 1, req)}
	if reply, ok := d.try(req); ok || reply.Status != 403 {
		t.Errorf("%v, %+v", ok, reply)
	}
	d.a.MayRegister = func(user, aor AOR) bool { return user == "sip:bob@example.test" && aor == "sip:alice@example.test" }
	if reply, ok := d.try(req); !ok {
		t.Errorf("%+v", reply)
	}
	req.Authorization = []string{answer(t, "bob", "wrong", MD5, d.nonce(), "auth", 1, req)}
	if reply, ok := d.try(req); ok || reply.Status != 401 {
		t.Errorf("%v, %+v", ok, reply)
	}
}

func TestCase36Stale(t *testing.T) {
	d := newDoorman(t)
	d.a.NonceLife = time.Minute
	n := d.nonce()
	d.now = d.now.Add(time.Minute)
	reply, ok := d.attempt(2, n, MD5, "auth", 1)
	if ok || d.challenged(reply)["stale"] != "true" {
		t.Fatalf("too old, digest right: %v, %+v", ok, reply)
	}
	if reply, ok = d.attempt(2, d.challenged(reply)["nonce"], MD5, "auth", 1); !ok {
		t.Fatalf("%+v", reply)
	}
	req := d.request("c", 3, "<sip:a@h>")
	req.Authorization = []string{answer(t, "alice", "wrong", MD5, n, "auth", 1, req)}
	if reply, ok = d.try(req); ok || d.challenged(reply)["stale"] != "" {
		t.Errorf("too old, digest wrong: %+v", reply)
	}
	other := newDoorman(t)
	other.a.Key = []byte("another pool's key, not this one")
	if reply, ok = d.attempt(4, other.nonce(), MD5, "auth", 1); ok || d.challenged(reply)["stale"] != "" {
		t.Errorf("not our nonce: %v, %+v", ok, reply)
	}
}

func TestSeveralAuthorizations(t *testing.T) {
	d := newDoorman(t)
	d.a.Algorithms = []string{SHA256, MD5}
	n := d.nonce()
	req := d.request("c", 2, "<sip:a@h>")
	good := answer(t, "alice", "secret", MD5, n, "auth", 1, req)
	req.Authorization = []string{
		`Digest username="x", realm="elsewhere", nonce="1", uri="sip:x", response="2"`, "Bearer abc",
		answer(t, "alice", "wrong", SHA256, n, "auth", 1, req), good,
	}
	if reply, ok := d.try(req); !ok {
		t.Errorf("%+v", reply)
	}
	req = d.request("c", 3, "<sip:a@h>")
	bad := answer(t, "alice", "wrong", MD5, n, "auth", 2, req)
	req.Authorization = []string{bad, bad, bad, bad, answer(t, "alice", "secret", MD5, n, "auth", 2, req)}
	if _, ok := d.try(req); ok {
		t.Error("the work of one request is not bounded")
	}
}

func TestMalformedAuthorization(t *testing.T) {
	d := newDoorman(t)
	n := d.nonce()
	for name, c := range map[string]struct {
		value  string
		status int
	}{
		"no response":         {`Digest username="alice", realm="example.test", nonce="` + n + `", uri="sip:example.test"`, 400},
		"no username":         {`Digest realm="example.test", nonce="` + n + `", uri="sip:x", response="0"`, 400},
		"nc of seven":         {`Digest username="alice", realm="example.test", nonce="x", uri="sip:x", response="0", qop=auth, nc=0000001, cnonce="1"`, 400},
		"no cnonce":           {`Digest username="alice", realm="example.test", nonce="x", uri="sip:x", response="0", qop=auth, nc=00000001`, 400},
		"open quote":          {`Digest username="alice`, 400},
		"nothing":             {"", 400},
		"empty, as IMS sends": {`Digest username="alice", realm="example.test", nonce="", uri="sip:example.test", response=""`, 401},
		"other realm":         {`Digest realm="x"`, 401},
		"other scheme":        {"Basic QWxhZGRpbg==", 401},
	} {
		req := d.request("c", 2, "<sip:a@h>")
		req.Authorization = []string{c.value}
		if reply, ok := d.try(req); ok || reply.Status != c.status {
			t.Errorf("%s: %v, %+v, want %d", name, ok, reply, c.status)
		}
	}
}

type brokenRand struct{}

func (brokenRand) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestNoRandomness(t *testing.T) {
	d := newDoorman(t)
	d.a.Rand = brokenRand{}
	if reply, ok := d.try(d.request("c", 1, "<sip:a@h>")); ok || reply.Status != 500 {
		t.Errorf("%v, %+v", ok, reply)
	}
}
