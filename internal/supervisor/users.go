package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/internal/directory"
)

// credentials of a user who has just been made. Shown once; the pool doesn't keep passwords.
type credentials struct{ user, password string }

// welcome provisions the first users, and tells what it made. Without a file those are alice
// and bob, unless somebody is there already. A file is read at every start.
func welcome(ctx context.Context, b bus.Bus, s control.Settings, file string) (made []credentials, users *directory.Table, err error) {
	users = directory.New(s.GroupIDs(), b.Users())
	if err := users.Follow(ctx); err != nil {
		return nil, nil, err
	}
	select {
	case <-users.Ready():
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	names := directory.Names{Domains: s.Domains, Realm: s.Realm}
	if file != "" {
		return nil, users, importFile(ctx, users, names, file)
	}
	if users.Len() > 0 {
		return nil, users, nil
	}
	for _, name := range []string{"alice", "bob"} {
		password := directory.NewPassword()
		a, err := names.AOR(name)
		if err != nil {
			return nil, nil, err
		}
		ha1, err := names.HA1s(a, password)
		if err != nil {
			return nil, nil, err
		}
		switch _, err := users.Provision(ctx, directory.User{AOR: a, HA1: ha1}); {
		case err == nil:
			made = append(made, credentials{name, password})
		case !errors.Is(err, directory.ErrExists):
			return nil, nil, err
		}
	}
	return made, users, nil
}

// importFile reads the whole file for errors before it stores anybody.
func importFile(ctx context.Context, users *directory.Table, names directory.Names, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("--users: %w", err)
	}
	defer f.Close()
	if _, err := names.Check(directory.CSV, file, f); err != nil && !errors.Is(err, directory.ErrNoUsers) {
		return err
	}
	if _, err := f.Seek(0, 0); err != nil {
		return err
	}
	_, _, err = users.Import(ctx, names.Read(directory.CSV, file, f), nil)
	return err
}
