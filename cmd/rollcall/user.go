package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/internal/directory"
)

// maxPassword bounds a password, in bytes.
const maxPassword = 1024

func userCommand() *cobra.Command {
	r := &reach{}
	cmd := &cobra.Command{
		Use:     "user",
		GroupID: "keep",
		Short:   "Add, import, list, change and remove users",
		Long: `A user is a SIP address of a served domain: alice means alice@ the first domain.
A new user is put into the emptiest routing group at once and stays there.
Passwords are not stored, only their digest hashes (HA1).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	r.addTo(cmd)
	cmd.AddCommand(userAddCommand(r), userImportCommand(r), userListCommand(r), userShowCommand(r), userPasswdCommand(r), userRemoveCommand(r))
	return cmd
}

// userPool is a connection to a pool whose users are to be seen or changed.
type userPool struct {
	bus      bus.Bus
	settings control.Settings
	names    directory.Names
	users    *directory.Table
}

// withUsers connects and calls do. With follow, all users are in memory then, as they are now:
// what comes later would only cost time, and writes compare revisions anyway.
func withUsers(cmd *cobra.Command, r *reach, follow bool, do func(context.Context, userPool) error) error {
	ctx, stop := interruptible(cmd)
	defer stop()
	b, settings, err := r.openPool(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	p := userPool{bus: b, settings: settings, names: namesOf(settings), users: directory.New(settings.GroupIDs(), b.Users())}
	if follow {
		following, enough := context.WithCancel(ctx)
		defer enough()
		if err := p.users.Follow(following); err != nil {
			return err
		}
		select {
		case <-p.users.Ready():
		case <-time.After(time.Minute):
			return errors.New("the users table could not be read within a minute: is the bus overloaded?")
		case <-ctx.Done():
			return errors.New("interrupted")
		}
		enough()
	}
	return do(ctx, p)
}

func userAddCommand(r *reach) *cobra.Command {
	var fromStdin bool
	var maxContacts int
	cmd := &cobra.Command{
		Use:   "add USER",
		Short: "Add a user and print a generated password",
		Example: `  rollcall user add carol
  rollcall user add carol@example.test --password-stdin < secret`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withUsers(cmd, r, true, func(ctx context.Context, p userPool) error {
				a, err := p.names.AOR(args[0])
				if err != nil {
					return err
				}
				password := directory.NewPassword()
				if fromStdin {
					if password, err = firstLine(cmd.InOrStdin()); err != nil {
						return err
					}
				}
				ha1, err := p.names.HA1s(a, password)
				if err != nil {
					return err
				}
				u, err := p.users.Provision(ctx, directory.User{AOR: a, HA1: ha1, MaxContacts: maxContacts})
				if errors.Is(err, directory.ErrExists) {
					return fmt.Errorf("%s exists already: 'rollcall user passwd %s' sets a new password", a, args[0])
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is in routing group %s\n", u.AOR, u.Group)
				if !fromStdin {
					fmt.Fprintf(cmd.OutOrStdout(), "password: %s\n", password)
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input instead of making one")
	cmd.Flags().IntVar(&maxContacts, "max-contacts", 0, "bindings this user may have; 0 for the pool's default")
	return cmd
}

func userPasswdCommand(r *reach) *cobra.Command {
	var fromStdin, generate bool
	cmd := &cobra.Command{
		Use:   "passwd USER",
		Short: "Set a user's password",
		Long: `Asks for a new password without showing it. Registrations stay; the next
challenge wants the new password.`,
		Example: `  rollcall user passwd alice
  rollcall user passwd alice --generate
  rollcall user passwd alice --password-stdin < secret`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withUsers(cmd, r, false, func(ctx context.Context, p userPool) error {
				a, err := p.names.AOR(args[0])
				if err != nil {
					return err
				}
				if _, err := p.users.Get(ctx, a); err != nil { // before anybody types a password
					return noSuchUser(err, args[0])
				}
				var password string
				switch {
				case generate:
					password = directory.NewPassword()
				case fromStdin:
					password, err = firstLine(cmd.InOrStdin())
				default:
					password, err = askPassword(cmd, args[0])
				}
				if err != nil {
					return err
				}
				ha1, err := p.names.HA1s(a, password)
				if err != nil {
					return err
				}
				if err := p.users.Update(ctx, a, func(u *directory.User) { u.HA1 = ha1 }); err != nil {
					return noSuchUser(err, args[0])
				}
				if generate {
					fmt.Fprintf(cmd.OutOrStdout(), "password: %s\n", password)
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
	cmd.Flags().BoolVar(&generate, "generate", false, "make a password and print it")
	cmd.MarkFlagsMutuallyExclusive("password-stdin", "generate")
	return cmd
}

// firstLine reads a password from a pipe.
func firstLine(in io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(in, maxPassword+1)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" || len(line) > maxPassword {
		return "", fmt.Errorf("standard input: a password of 1 to %d bytes is expected on its first line", maxPassword)
	}
	return line, nil
}

// askPassword asks twice at the terminal, without echo.
func askPassword(cmd *cobra.Command, name string) (string, error) {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return "", usageError{errors.New("no terminal to ask for the password: use --password-stdin or --generate")}
	}
	var typed [2]string
	for i, prompt := range []string{"New password for " + name + ": ", "Again: "} {
		fmt.Fprint(cmd.ErrOrStderr(), prompt)
		password, err := term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(cmd.ErrOrStderr())
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		typed[i] = string(password)
	}
	switch {
	case typed[0] != typed[1]:
		return "", errors.New("the two passwords differ: nothing is changed")
	case typed[0] == "" || len(typed[0]) > maxPassword:
		return "", fmt.Errorf("a password has 1 to %d bytes: nothing is changed", maxPassword)
	}
	return typed[0], nil
}

func userShowCommand(r *reach) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show USER",
		Short:   "Show what is stored of a user; no secrets",
		Example: `  rollcall user show alice`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withUsers(cmd, r, false, func(ctx context.Context, p userPool) error {
				a, err := p.names.AOR(args[0])
				if err != nil {
					return err
				}
				u, err := p.users.Get(ctx, a)
				if err != nil {
					return noSuchUser(err, args[0])
				}
				shown := showUser(u)
				if asJSON {
					return printJSON(cmd.OutOrStdout(), shown)
				}
				limit := "as the pool's default"
				if u.MaxContacts > 0 {
					limit = fmt.Sprint(u.MaxContacts)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s\n  group         %s\n  realm         %s\n  digest        %s\n  max contacts  %s\n",
					u.AOR, u.Group, p.names.RealmOf(a), strings.Join(shown.Digest, " "), limit)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "for programs")
	return cmd
}

// shownUser is a user without secrets.
type shownUser struct {
	AOR         string   `json:"aor"`
	Group       string   `json:"group"`
	Digest      []string `json:"digest"` // algorithms that a password is set for
	MaxContacts int      `json:"max_contacts"`
}

func showUser(u directory.User) shownUser {
	names := map[string]bool{}
	for name := range u.HA1 {
		names[strings.TrimSuffix(name, "@")] = true
	}
	algorithms := slices.Sorted(maps.Keys(names))
	if algorithms == nil {
		algorithms = []string{}
	}
	return shownUser{AOR: string(u.AOR), Group: string(u.Group), Digest: algorithms, MaxContacts: u.MaxContacts}
}

func userRemoveCommand(r *reach) *cobra.Command {
	return &cobra.Command{
		Use:   "rm USER...",
		Short: "Remove users",
		Long: `Removes users. What they have registered is taken away at once, and their
connections close. When one of several can't be removed, the others are all the
same.`,
		Example: `  rollcall user rm carol dave@example.test`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withUsers(cmd, r, false, func(ctx context.Context, p userPool) error {
				return removeUsers(ctx, cmd.OutOrStdout(), p, args)
			})
		},
	}
}

// removeUsers removes all that it can, says whom, and returns what went wrong.
func removeUsers(ctx context.Context, out io.Writer, p userPool, names []string) error {
	var failed []error
	for _, name := range names {
		a, err := p.names.AOR(name)
		if err == nil {
			err = noSuchUser(p.users.Remove(ctx, a), name)
		}
		if err != nil {
			failed = append(failed, err)
			if ctx.Err() != nil || errors.Is(err, bus.ErrUnavailable) {
				break // the others would fail alike
			}
			continue
		}
		fmt.Fprintf(out, "%s is removed\n", a)
	}
	return errors.Join(failed...)
}

// noSuchUser says it in plain words when that is what err means.
func noSuchUser(err error, name string) error {
	if errors.Is(err, bus.ErrNotFound) {
		return fmt.Errorf("there is no user %s: 'rollcall user list' names all, 'rollcall user add %s' adds one", name, name)
	}
	return err
}
