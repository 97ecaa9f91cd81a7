package loadtest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// maxTargets bounds the addresses used.
const maxTargets = 256

// resolve makes addresses of targets: host:port as it is (every address of a name), and a bare
// domain by DNS SRV in the order of RFC 2782, or else its addresses with the default port.
func resolve(ctx context.Context, r *net.Resolver, transport string, targets []string) ([]string, error) {
	var out []string
	for _, t := range targets {
		t = strings.TrimSpace(t)
		host, port, err := net.SplitHostPort(t)
		if err != nil {
			host, port = strings.Trim(t, "[]"), ""
		}
		found, err := resolveOne(ctx, r, transport, host, port)
		if err != nil {
			return nil, fmt.Errorf("target %s: %w", t, err)
		}
		out = append(out, found...)
	}
	if len(out) == 0 || len(out) > maxTargets {
		return nil, fmt.Errorf("%d addresses for the targets %s: from 1 to %d", len(out), strings.Join(targets, ", "), maxTargets)
	}
	return out, nil
}

func resolveOne(ctx context.Context, r *net.Resolver, transport, host, port string) ([]string, error) {
	if host == "" {
		return nil, fmt.Errorf("no host: write HOST:PORT, or a domain")
	}
	if net.ParseIP(host) == nil && port == "" {
		if out := resolveSRV(ctx, r, transport, host); len(out) > 0 {
			return out, nil
		}
	}
	if port == "" {
		port = map[string]string{"tls": "5061", "ws": "80", "wss": "443"}[transport]
		if port == "" {
			port = "5060"
		}
	}
	if net.ParseIP(host) != nil {
		return []string{net.JoinHostPort(host, port)}, nil
	}
	addresses, err := r.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(addresses))
	for _, a := range addresses {
		out = append(out, net.JoinHostPort(a, port))
	}
	return out, nil
}

// resolveSRV follows RFC 3263 §4.2; no records, or none that can be resolved, are no error.
func resolveSRV(ctx context.Context, r *net.Resolver, transport, domain string) []string {
	service, proto := "sip", transport
	switch transport {
	case "tls":
		service, proto = "sips", "tcp"
	case "ws", "wss":
		return nil // RFC 7118 names no SRV service
	}
	_, records, err := r.LookupSRV(ctx, service, proto, domain)
	if err != nil {
		return nil
	}
	var out []string
	for _, rec := range records {
		addresses, err := r.LookupHost(ctx, strings.TrimSuffix(rec.Target, "."))
		if err != nil {
			continue
		}
		for _, a := range addresses {
			out = append(out, net.JoinHostPort(a, strconv.Itoa(int(rec.Port))))
		}
	}
	return out
}

// sources are the own addresses of clients. On loopback each ten thousand clients get one of
// 127.0.0.0/8, as an address has only some 28,000 ports.
func sources(given, targets []string, clients, perAddress int) []string {
	if len(given) > 0 {
		return given
	}
	for _, t := range targets {
		host, _, err := net.SplitHostPort(t)
		ip := net.ParseIP(host)
		if err != nil || ip == nil || !ip.IsLoopback() || ip.To4() == nil {
			return nil // the system chooses
		}
	}
	n := (clients + perAddress - 1) / perAddress
	if n < 2 {
		return nil
	}
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("127.0.%d.%d", 1+i/250, 1+i%250)
	}
	return out
}
