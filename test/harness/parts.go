package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"rollcall/routing"
)

// Parts is a pool made of processes that were started one by one, as over several
// machines: `rollcall bus` and `rollcall frontend`, without `rollcall up`.
type Parts struct {
	Pool
	Members map[routing.FrontEnd]*Process
	busArgs []string
	feArgs  map[routing.FrontEnd][]string
}

// StartParts starts a bus and Front Ends, and imports the users.
func StartParts(ctx context.Context, o PoolOptions) (*Parts, error) {
	base, err := o.Ports.Pool(o.FrontEnds)
	if err != nil {
		return nil, err
	}
	busPort, err := o.Ports.One()
	if err != nil {
		return nil, err
	}
	url := "nats://" + local(busPort)
	p := &Parts{
		Pool: Pool{Binary: o.Binary, SIP: local(base), Data: filepath.Join(o.Dir, "data"), FrontEnds: o.FrontEnds,
			reach: []string{"--nats", url}},
		Members: map[routing.FrontEnd]*Process{}, feArgs: map[routing.FrontEnd][]string{},
		busArgs: []string{"bus", "--data", filepath.Join(o.Dir, "data"), "--port", strconv.Itoa(busPort)},
	}
	config := filepath.Join(o.Dir, "frontend.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "pool:\n  expect: %d\n  domains: [%s]\n", o.FrontEnds, Domain), 0o600); err != nil {
		return nil, err
	}
	for n := 1; n <= o.FrontEnds; n++ {
		own := local(base + 10 + n)
		name := routing.FrontEnd(fmt.Sprintf("fe%d", n))
		p.feArgs[name] = []string{"frontend", "--config", config, "--name", string(name), "--nats", url,
			"--sip", "udp:" + own, "--sip", "tcp:" + own, "--shared-sip", p.SIP}
	}
	if err := p.start(ctx, o); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *Parts) start(ctx context.Context, o PoolOptions) error {
	if err := p.StartBus(); err != nil {
		return err
	}
	for name := range p.feArgs {
		if err := p.StartFrontEnd(name); err != nil {
			return err
		}
	}
	if _, err := p.Ready(ctx, time.Minute); err != nil {
		return err
	}
	file := filepath.Join(o.Dir, "users.csv")
	if err := WriteUsers(file, o.Users); err != nil {
		return err
	}
	_, err := p.Run(ctx, "user", "import", file)
	return err
}

// StartBus starts the bus, also a second time.
func (p *Parts) StartBus() (err error) {
	p.Up, err = Start(Spec{Path: p.Binary, Args: p.busArgs})
	return err
}

// StartFrontEnd starts one Front End, also a second time.
func (p *Parts) StartFrontEnd(name routing.FrontEnd) (err error) {
	p.Members[name], err = Start(Spec{Path: p.Binary, Args: p.feArgs[name]})
	return err
}

// Stop ends the Front Ends and then the bus, as Ctrl-C does.
func (p *Parts) Stop() error {
	var errs []error
	for _, fe := range p.Members {
		if fe != nil {
			errs = append(errs, fe.Stop(20*time.Second))
		}
	}
	if p.Up != nil {
		errs = append(errs, p.Up.Stop(20*time.Second))
	}
	return errors.Join(errs...)
}

// Logs are what the processes wrote, by name.
func (p *Parts) Logs() (map[string]string, error) {
	logs := map[string]string{"bus": p.Up.Output()}
	for name, fe := range p.Members {
		logs[string(name)] = fe.Output()
	}
	return logs, nil
}
