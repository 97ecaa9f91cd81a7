package sipfront

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tortureAnswers is what each message of RFC 4475 deserves from a registrar over
// UDP: the code, or 0 for no answer. 200 to a REGISTER means that the Handler got it.
var tortureAnswers = map[string]struct {
	code int
	why  string
}{
	"invalid/badaspec":   {400, "§3.1.2.14 blanks within <>"},
	"invalid/badbranch":  {200, "§3.2.1 branch is only the cookie: no reason to refuse without transactions"},
	"invalid/baddate":    {405, "§3.1.2.12 Date is not looked at; INVITE is not for a registrar"},
	"invalid/baddn":      {400, "§3.1.2.15 unquoted comma in a display name"},
	"invalid/badinv01":   {0, "§3.1.2.1 the Via itself can't be read"},
	"invalid/badvers":    {505, "§3.1.2.16"},
	"invalid/bcast":      {0, "§3.3.10 a response to nothing"},
	"invalid/bext01":     {420, "§3.3.5"},
	"invalid/bigcode":    {0, "§3.1.2.19 a response is never answered"},
	"invalid/clerr":      {400, "§3.1.2.2 Content-Length beyond the datagram"},
	"invalid/cparam01":   {200, "§3.3.12 unknown Contact parameter"},
	"invalid/cparam02":   {200, "§3.3.13 unknown URI parameter"},
	"invalid/escruri":    {400, "§3.1.2.11 headers in the Request-URI"},
	"invalid/insuf":      {400, "§3.3.1 no Call-ID, From, To"},
	"invalid/inv2543":    {405, "§3.4.1 RFC 2543 is understood; INVITE is not for a registrar"},
	"invalid/invut":      {405, "§3.3.6"},
	"invalid/ltgtruri":   {400, "§3.1.2.7"},
	"invalid/lwsruri":    {400, "§3.1.2.8"},
	"invalid/lwsstart":   {400, "§3.1.2.9"},
	"invalid/mcl01":      {400, "§3.3.9 two Content-Length"},
	"invalid/mismatch01": {400, "§3.1.2.17"},
	"invalid/mismatch02": {501, "§3.1.2.18 the method is unknown, before it can mismatch"},
	"invalid/multi01":    {400, "§3.3.8"},
	"invalid/ncl":        {400, "§3.1.2.3"},
	"invalid/novelsc":    {416, "§3.3.3"},
	"invalid/quotbal":    {400, "§3.1.2.6"},
	"invalid/regaut01":   {200, "§3.3.7 unknown scheme: for the Handler"},
	"invalid/regbadct":   {400, "§3.1.2.13 headers of a Contact outside <>"},
	"invalid/regescrt":   {200, "§3.3.14 headers of a Contact within <>"},
	"invalid/scalar02":   {400, "§3.1.2.4"},
	"invalid/scalarlg":   {0, "§3.1.2.5 a response is never answered"},
	"invalid/sdp01":      {405, "§3.3.15"},
	"invalid/test":       {0, "no version: not SIP"},
	"invalid/trws":       {400, "§3.1.2.10"},
	"invalid/unkscm":     {416, "§3.3.2"},
	"invalid/unksm2":     {400, "§3.3.4 To is no SIP URI"},
	"invalid/zeromf":     {200, "§3.3.11 only proxies count"},
	"valid/dblreq":       {200, "§3.1.1.8 the second request in the datagram is ignored"},
	"valid/esc01":        {405, "§3.1.1.3"},
	"valid/esc02":        {501, "§3.1.1.5 RE%47IST%45R is not REGISTER"},
	"valid/escnull":      {200, "§3.1.1.4"},
	"valid/intmeth":      {501, "§3.1.1.2"},
	"valid/longreq":      {405, "§3.1.1.7"},
	"valid/lwsdisp":      {200, "§3.1.1.6"},
	"valid/mpart01":      {405, "§3.1.1.11"},
	"valid/noreason":     {0, "§3.1.1.13"},
	"valid/semiuri":      {200, "§3.1.1.9"},
	"valid/transports":   {200, "§3.1.1.10"},
	"valid/unreason":     {0, "§3.1.1.12"},
	"valid/wsinv":        {405, "§3.1.1.1"},
}

// TestTorture sends the messages of RFC 4475, which the sipgo module carries, byte by byte as they are.
func TestTorture(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/emiago/sipgo").Output()
	if err != nil {
		t.Fatalf("can't find the sipgo module: %v", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "sip", "testdata", "torture")
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.dat"))
	if err != nil || len(files) != len(tortureAnswers) {
		t.Fatalf("%d messages for %d answers, %v", len(files), len(tortureAnswers), err)
	}
	for _, file := range files {
		rel, _ := filepath.Rel(dir, strings.TrimSuffix(file, ".dat"))
		t.Run(rel, func(t *testing.T) {
			want, ok := tortureAnswers[filepath.ToSlash(rel)]
			data, err := os.ReadFile(file)
			if err != nil || !ok {
				t.Fatal(err, ok)
			}
			n := newFakeNet()
			open(t, newAnswerer(nil), func(c *Config) { c.Net, c.Listen = n, n.listen() })
			from := net.UDPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.66:5060"))
			n.packets.in <- packet{string(data), from}
			// The answer to the next one shows that there is none to this one.
			n.packets.in <- packet{register("last", 1, "REGISTER sip => OPTIONS sip", "1 REGISTER => 1 OPTIONS"), from}
			got := []string{}
			for len(got) < 2 {
				select {
				case p := <-n.packets.out:
					got = append(got, p.data)
				case <-time.After(patience):
					t.Fatalf("%s: got %q", want.why, got)
				}
				if want.code == 0 && len(got) == 1 {
					if field(got[0], "Call-ID") != "call-last@192.0.2.10" {
						t.Fatalf("%s: answered with %q", want.why, got[0])
					}
					return
				}
			}
			for _, g := range got { // a REGISTER's answer may come second
				if field(g, "Call-ID") != "call-last@192.0.2.10" {
					wantStatus(t, g, want.code)
					return
				}
			}
			t.Fatalf("%s: not answered", want.why)
		})
	}
}
