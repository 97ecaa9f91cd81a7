package supervisor

import (
	"fmt"
	"strings"
	"time"

	"rollcall/internal/control"
)

// guide is what `up` tells when the pool stands: how to point a softphone at it.
type guide struct {
	settings  control.Settings
	addresses Addresses
	made      []credentials
	users     int
	http      string
	dataFlag  string // " --data DIR" when the commands need it
	restart   time.Duration
}

func (g guide) String() string {
	var b strings.Builder
	domain := g.settings.Domains[0]
	shared := reachable(g.addresses.Shared)
	fmt.Fprintf(&b, "Rollcall is starting %d Front Ends for %s.\n\n", len(g.addresses.Own), strings.Join(g.settings.Domains, ", "))
	b.WriteString("Point a softphone at it:\n")
	fmt.Fprintf(&b, "  server     %s, UDP or TCP (as proxy, registrar or outbound proxy)\n", shared)
	if shared != g.addresses.Shared {
		b.WriteString("             (from elsewhere: the same port at this machine's address)\n")
	}
	fmt.Fprintf(&b, "  domain     %s\n", domain)
	if g.settings.Auth == control.AuthOff {
		b.WriteString("  user       any name you like: passwords are not asked for\n")
	} else {
		fmt.Fprintf(&b, "  realm      %s\n", g.settings.RealmOf(domain))
		b.WriteString(g.userLines())
	}
	fmt.Fprintf(&b, "  or use a Front End's own address: %s\n\n", strings.Join(reachableAll(g.addresses.Own), " "))
	b.WriteString("In another terminal:\n")
	for _, line := range [][2]string{
		{"status", "who holds which copies"},
		{"explain alice", "where a user is served, and why"},
		{"watch", "what happens, as it happens"},
	} {
		fmt.Fprintf(&b, "  rollcall %-*s # %s\n", max(40, len("explain alice"+g.dataFlag)), line[0]+g.dataFlag, line[1])
	}
	if g.http != "" {
		fmt.Fprintf(&b, "  http://%s/status, /metrics and /healthz say the same to programs.\n", reachable(g.http))
	}
	again := "is not started again (--restart-after 0)"
	if g.restart > 0 {
		again = fmt.Sprintf("is started again after %v", g.restart)
	}
	fmt.Fprintf(&b, "Kill a Front End and see: kill -9 PID; it %s. Ctrl-C stops the pool.\n", again)
	return b.String()
}

func (g guide) userLines() string {
	var b strings.Builder
	for _, c := range g.made {
		fmt.Fprintf(&b, "  user       %-8s password  %s\n", c.user, c.password)
	}
	switch {
	case len(g.made) > 0:
		fmt.Fprintf(&b, "             (shown this once: passwords are not stored; 'rollcall user passwd alice%s' sets a new one)\n", g.dataFlag)
	case g.users == 0:
		fmt.Fprintf(&b, "  users      none yet: 'rollcall user add NAME%s' adds one\n", g.dataFlag)
	case g.users == 1:
		fmt.Fprintf(&b, "  user       the one there is: 'rollcall user list%s'\n", g.dataFlag)
	default:
		fmt.Fprintf(&b, "  users      %d, with the passwords they had: 'rollcall user list%s' names them,\n", g.users, g.dataFlag)
		fmt.Fprintf(&b, "             'rollcall user passwd NAME%s' sets a new password\n", g.dataFlag)
	}
	return b.String()
}

func reachableAll(addresses []string) []string {
	all := make([]string, len(addresses))
	for i, a := range addresses {
		all[i] = reachable(a)
	}
	return all
}
