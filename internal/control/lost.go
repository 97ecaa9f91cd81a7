package control

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	"rollcall/bus"
	"rollcall/internal/directory"
	"rollcall/registrar"
	"rollcall/routing"
)

// markLost marks the bindings whose flow has gone. The Front Ends are asked which
// process runs there now; the stored record says which one had the flow.
func markLost(ctx context.Context, b bus.Bus, user directory.User, p routing.Placement, bindings []Binding) error {
	if len(bindings) == 0 {
		return nil
	}
	members, err := readMembers(ctx, b.Pool())
	if err != nil {
		return err
	}
	ask := make([]routing.FrontEnd, 0, len(members))
	for fe := range members {
		ask = append(ask, fe)
	}
	for _, c := range bindings { // also of one that is no member any more
		if fe := routing.FrontEnd(c.Flow.FrontEnd); fe != "" && !slices.Contains(ask, fe) {
			ask = append(ask, fe)
		}
	}
	answers := askAll(ctx, b, ask)
	stored := storedFlows(ctx, b, user)
	for i, c := range bindings {
		flow, ok := stored[bindingID{c.Contact, c.CallID, c.CSeq}]
		if !ok || flow.FrontEnd != c.Flow.FrontEnd { // refreshed since; or the log could not be read
			flow = c.Flow
		}
		bindings[i].Lost = lost(flow, p, answers)
	}
	return ctx.Err()
}

// bindingID tells the bindings of one user apart.
type bindingID struct {
	contact, callID string
	cseq            uint32
}

// storedFlows returns the flows as they are stored, with the boot id and local address that are
// not told to others; none when the log can't be read, which only makes markLost say less.
func storedFlows(ctx context.Context, b bus.Bus, user directory.User) map[bindingID]registrar.Flow {
	record, err := b.Bindings().Last(ctx, string(user.Group), string(user.AOR))
	if err != nil {
		return nil
	}
	set, err := registrar.DecodeSet(record.Data)
	if err != nil {
		return nil
	}
	flows := make(map[bindingID]registrar.Flow, len(set.Bindings))
	for _, b := range set.Bindings {
		flows[bindingID{b.URI, b.CallID, b.CSeq}] = b.Flow
	}
	return flows
}

// lost decides whether a flow has gone. A connection goes with the process that had it; over UDP,
// any process that listens at the address the client sent to can go on. A Front
// End that is silent may be only slow: it counts as the placement has it.
func lost(f registrar.Flow, p routing.Placement, answers map[routing.FrontEnd]answer) bool {
	name := routing.FrontEnd(f.FrontEnd)
	if name == "" {
		return false
	}
	own := answers[name]
	if own.status == nil && !own.gone {
		return p.Members[name].State == routing.Down
	}
	if f.Stream() {
		return own.gone || f.Boot != "" && own.status.Boot != f.Boot
	}
	if own.status != nil {
		return false
	}
	for _, a := range answers {
		if a.status != nil && slices.ContainsFunc(a.status.SIP, func(l string) bool { return listensFor(l, f) }) {
			return false
		}
	}
	return true
}

// listensFor reports whether a listener ("udp:host:port") gets what is sent to the flow's local address.
func listensFor(listener string, f registrar.Flow) bool {
	transport, address, _ := strings.Cut(listener, ":")
	if transport != f.Transport || f.Local == "" {
		return false
	}
	if address == f.Local {
		return true
	}
	host, port, err := net.SplitHostPort(address)
	_, want, err2 := net.SplitHostPort(f.Local)
	ip, err3 := netip.ParseAddr(host)
	return err == nil && err2 == nil && port == want && (host == "" || err3 == nil && ip.IsUnspecified())
}
