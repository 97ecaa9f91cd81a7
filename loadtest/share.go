package loadtest

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"runtime"
	"time"

	"rollcall/loadtest/behaviour"
	"rollcall/loadtest/engine"
	"rollcall/loadtest/link"
	"rollcall/loadtest/phone"
	"rollcall/loadtest/scenario"
)

// share is one process's part of a run.
type share struct {
	Scenario *scenario.Scenario `json:"scenario"`
	Password string             `json:"password"` // the scenario's JSON leaves it out
	Targets  []string           `json:"targets"`
	Sources  []string           `json:"sources"`
	First    int                `json:"first"`
	Count    int                `json:"count"`
	Start    time.Time          `json:"start"`
	Width    time.Duration      `json:"width_ns"`
}

// engine builds the phones of a share. dialer is nil for the network.
func (s *share) engine(dialer link.Dialer) (*engine.Engine, error) {
	sc := s.Scenario
	sc.Password = s.Password
	choose, err := sc.Choose()
	if err != nil {
		return nil, err
	}
	credentials, err := sc.Credentials()
	if err != nil {
		return nil, err
	}
	if dialer == nil {
		if dialer, err = network(sc); err != nil {
			return nil, err
		}
	}
	configs := map[*behaviour.Behaviour]*phone.Config{}
	phones := make([]*phone.Phone, s.Count)
	for k := range phones {
		i := s.First + k
		b := choose(i)
		cfg := configs[b]
		if cfg == nil {
			cfg = &phone.Config{Behaviour: b, Transport: sc.Transport, Domain: sc.Domain, Targets: s.Targets,
				Expires: int(sc.Expires.D() / time.Second), Seed: sc.Seed, T1: sc.T1.D(), Timeout: sc.Timeout.D()}
			configs[b] = cfg
		}
		target := 0
		if sc.Spread == "even" {
			target = i
		}
		user, password := credentials(i)
		phones[k] = phone.New(cfg, i, user, password, target, sc.Ramp.Start(i, sc.Clients))
	}
	return engine.New(engine.Options{Phones: phones, First: s.First, Transport: sc.Transport, Dialer: dialer, Start: s.Start,
		Width: s.Width, Shards: runtime.GOMAXPROCS(0), Source: func(i int) string {
			if len(s.Sources) == 0 {
				return ""
			}
			return s.Sources[i%len(s.Sources)]
		}})
}

// network is the dialer of a scenario.
func network(sc *scenario.Scenario) (link.Dialer, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: sc.TLS.Name, InsecureSkipVerify: sc.TLS.Insecure}
	if sc.TLS.CA != "" {
		pem, err := os.ReadFile(sc.TLS.CA)
		if err != nil {
			return nil, err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: no PEM certificate in it", sc.TLS.CA)
		}
	}
	return &link.Net{TLS: cfg, WSPath: sc.WSPath}, nil
}
