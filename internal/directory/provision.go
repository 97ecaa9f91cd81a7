package directory

import (
	"context"
	"errors"
	"fmt"

	"rollcall/bus"
	"rollcall/registrar"
)

// maxTries bounds how often a change is decided again because somebody else wrote meanwhile.
const maxTries = 10

// Provision stores a new user and returns him as stored. Without a group he gets
// the emptiest one, which is known only once the table is Ready: Provision waits
// for that. If the user is there already it returns the stored one and ErrExists.
// Lookup sees the user as soon as Provision returns. Other errors: bus.ErrUnavailable.
func (t *Table) Provision(ctx context.Context, u User) (User, error) {
	if err := t.wait(ctx); err != nil {
		return User{}, err
	}
	if stored, ok := t.Lookup(u.AOR); ok {
		return stored, ErrExists
	}
	if u.Group == "" {
		g, ok := t.groups.reserve(u.AOR)
		if !ok {
			return User{}, errors.New("the pool has no routing groups")
		}
		defer t.groups.release(u.AOR)
		u.Group = g
	}
	value, err := Encode(u)
	if err != nil {
		return User{}, err
	}
	revision, err := t.users.Put(ctx, bus.Write{Key: string(u.AOR), Value: value})
	switch {
	case err == nil:
		t.store(u, revision)
		return u, nil
	case errors.Is(err, bus.ErrConflict):
		stored, _, err := t.read(ctx, u.AOR)
		if err != nil {
			return User{}, fmt.Errorf("provision: %w", err)
		}
		return stored, ErrExists
	}
	return User{}, fmt.Errorf("provision %s: %w", u.AOR, err)
}

// Update changes a stored user: change gets a copy that is its own and may be
// called again when somebody else wrote meanwhile. AOR and group never change.
// Errors: bus.ErrNotFound, bus.ErrConflict after several tries, bus.ErrUnavailable.
func (t *Table) Update(ctx context.Context, a registrar.AOR, change func(*User)) error {
	err := fmt.Errorf("user %s: %w", a, bus.ErrConflict)
	for try := 0; try < maxTries && errors.Is(err, bus.ErrConflict); try++ {
		err = t.updateOnce(ctx, a, change)
	}
	return err
}

func (t *Table) updateOnce(ctx context.Context, a registrar.AOR, change func(*User)) error {
	stored, revision, err := t.read(ctx, a)
	if err != nil {
		return err
	}
	next := stored
	next.HA1 = shareNames(stored.HA1, all)
	change(&next)
	next.AOR, next.Group, next.unknown = stored.AOR, stored.Group, stored.unknown
	value, err := Encode(next)
	if err != nil {
		return err
	}
	if revision, err = t.users.Put(ctx, bus.Write{Key: string(a), Value: value, Expect: revision}); err != nil {
		return fmt.Errorf("user %s: %w", a, err)
	}
	t.store(next, revision)
	return nil
}

// Remove removes a user. His bindings are not its business: a Front End refuses
// him from then on. Errors: bus.ErrNotFound, bus.ErrUnavailable.
func (t *Table) Remove(ctx context.Context, a registrar.AOR) error {
	err := fmt.Errorf("user %s: %w", a, bus.ErrConflict)
	for try := 0; try < maxTries && errors.Is(err, bus.ErrConflict); try++ {
		var e bus.Entry
		if e, err = t.users.Get(ctx, string(a)); err != nil {
			return fmt.Errorf("user %s: %w", a, err)
		}
		var revision bus.Revision
		if revision, err = t.users.Put(ctx, bus.Write{Key: string(a), Expect: e.Revision}); err == nil {
			t.forget(a, revision)
		} else {
			err = fmt.Errorf("user %s: %w", a, err)
		}
	}
	return err
}

// Get reads a user from the bus itself, for processes that don't Follow.
func (t *Table) Get(ctx context.Context, a registrar.AOR) (User, error) {
	u, _, err := t.read(ctx, a)
	return u, err
}

// read returns the user as the bus has it, and takes it in.
func (t *Table) read(ctx context.Context, a registrar.AOR) (User, bus.Revision, error) {
	e, err := t.users.Get(ctx, string(a))
	if err != nil {
		return User{}, 0, fmt.Errorf("user %s: %w", a, err)
	}
	u, err := Decode(a, e.Value)
	if err != nil {
		return User{}, 0, err
	}
	t.store(u, e.Revision)
	return u, e.Revision, nil
}

// wait returns when the table has caught up.
func (t *Table) wait(ctx context.Context) error {
	if !t.follows.Load() {
		return errors.New("directory: Follow the table before writing to it: groups are counted there")
	}
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the users table is not read yet: %w", ctx.Err())
	}
}
