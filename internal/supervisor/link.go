package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"rollcall/bus"
	"rollcall/bus/natsbus"
	"rollcall/internal/config"
)

// connectWithin bounds how long a command waits for the bus.
const connectWithin = 10 * time.Second

// Link is how a process reaches the pool's bus. Its Token is secret; passwords are
// not in it but in files that it names.
type Link struct {
	URL   string     `json:"url"`
	Token string     `json:"token,omitempty"`
	Via   config.Bus `json:"via"` // credentials, TLS, replicas
}

// Open connects to the bus. name is for people who look at the bus.
func (l Link) Open(ctx context.Context, name string, log *slog.Logger) (bus.Bus, error) {
	options, err := l.options(name, log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	b, err := natsbus.Open(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("no bus at %s: %w", l.URL, short(err))
	}
	return b, nil
}

func (l Link) options(name string, log *slog.Logger) (natsbus.Options, error) {
	o := natsbus.Options{
		URLs: strings.FieldsFunc(l.URL, func(r rune) bool { return r == ',' || r == ' ' }),
		Name: name, Token: l.Token, Replicas: l.Via.Replicas,
		CredsFile: l.Via.Credentials, User: l.Via.User,
		TLS: natsbus.TLS{CAFile: l.Via.TLS.CA, CertFile: l.Via.TLS.Cert, KeyFile: l.Via.TLS.Key},
		Log: log,
	}
	var err error
	if l.Via.Password != "" {
		if o.Password, err = ReadSecret(l.Via.Password); err != nil {
			return o, fmt.Errorf("password of the bus: %w", err)
		}
	}
	if l.Via.Token != "" {
		if o.Token, err = ReadSecret(l.Via.Token); err != nil {
			return o, fmt.Errorf("token of the bus: %w", err)
		}
	}
	return o, nil
}

// ReadSecret returns the first line of a file; "" when none is named.
func ReadSecret(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", fmt.Errorf("%s is empty", name)
	}
	return line, nil
}

// short keeps an error to one line.
func short(err error) error {
	if line, _, more := strings.Cut(err.Error(), "\n"); more {
		return errors.New(line)
	}
	return err
}
