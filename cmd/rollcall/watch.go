package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/internal/supervisor"
)

// lookForPool is how often a watcher sees whether its pool is still there.
const lookForPool = 250 * time.Millisecond

func watchCommand() *cobra.Command {
	var r reach
	var asJSON bool
	var types []string
	known := []string{control.EventPlacement, control.EventFrontEnd, control.EventRegistration, control.EventFlow}
	cmd := &cobra.Command{
		Use:     "watch",
		GroupID: "look",
		Short:   "Show placement changes and registrations as they happen",
		Long: `Prints a line for each event of the pool until Ctrl-C: placement (decided, seen,
ready), frontend (a state has changed), registration, flow. With --json, one
object a line; each has type, time and frontend, and epoch where it applies.

A watcher that is too slow misses events; it never slows the pool. When the pool
goes away, watch says so on the error stream, and waits for it to come back.`,
		Example: `  rollcall watch
  rollcall watch --type placement --type frontend
  rollcall watch --json | jq -c 'select(.type == "registration")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted := map[string]bool{}
			for _, t := range types {
				if !strings.Contains(" "+strings.Join(known, " ")+" ", " "+t+" ") {
					return usageError{fmt.Errorf("--type %s: choose %s", t, strings.Join(known, ", "))}
				}
				wanted[t] = true
			}
			return runWatch(cmd, r, asJSON, func(e control.Event) bool { return len(wanted) == 0 || wanted[e.Type] })
		},
	}
	r.addTo(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "for programs: one object a line")
	cmd.Flags().StringArrayVar(&types, "type", nil, "only this `type` of event (repeatable): "+strings.Join(known, ", "))
	return cmd
}

func runWatch(cmd *cobra.Command, r reach, asJSON bool, wanted func(control.Event) bool) error {
	ctx, stop := interruptible(cmd)
	defer stop()
	p := &eventPrinter{out: cmd.OutOrStdout(), asJSON: asJSON, wanted: wanted, stop: stop}
	link, err := r.find(ctx)
	if err != nil {
		return err
	}
	b, err := link.Open(ctx, "rollcall", slog.New(slog.DiscardHandler))
	for err == nil && b != nil {
		err = control.Watch(ctx, b, p.print)
		var next bus.Bus
		if err == nil {
			next, link = r.stay(ctx, b, link, cmd.ErrOrStderr())
		}
		b.Close() // its goroutine prints no more after this
		b = next
	}
	return errors.Join(err, p.broken)
}

// stay returns when ctx ends, or with a new connection when the pool has been started anew. It
// says when the bus goes away and when it is back.
func (r *reach) stay(ctx context.Context, b bus.Bus, link supervisor.Link, notes io.Writer) (bus.Bus, supervisor.Link) {
	said := ""
	say := func(what string) {
		if what != said {
			said = what
			fmt.Fprintf(notes, "%s %s\n", time.Now().Format("15:04:05.000"), what)
		}
	}
	tick := time.NewTicker(lookForPool)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, link
		case <-tick.C:
		}
		if b.Connected() {
			if said != "" {
				say("the bus is back; what happened meanwhile is not shown")
				said = ""
			}
			continue
		}
		now, err := r.find(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, supervisor.ErrNoPool):
			say("the pool has stopped; waiting for it to be started again (Ctrl-C ends this)")
		case err != nil || now == link:
			if said == "" {
				say("the bus is out of reach; waiting for it (Ctrl-C ends this)")
			}
		default:
			next, err := now.Open(ctx, "rollcall", slog.New(slog.DiscardHandler))
			if err == nil {
				how := "is back"
				if said == "" { // so fast that nobody saw it gone
					how = "has stopped, and is back"
				}
				say("the pool " + how + "; what happened meanwhile is not shown")
				return next, now
			}
		}
	}
}

// eventPrinter writes those events that are wanted. When nobody reads any more, it stops the command.
type eventPrinter struct {
	out    io.Writer
	asJSON bool
	wanted func(control.Event) bool
	stop   func()
	once   sync.Once
	broken error // read after the last print
}

func (p *eventPrinter) print(e control.Event) {
	if !p.wanted(e) {
		return
	}
	var err error
	if p.asJSON {
		encoder := json.NewEncoder(p.out)
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(e)
	} else {
		_, err = fmt.Fprintln(p.out, control.RenderEvent(e))
	}
	if err != nil {
		p.once.Do(func() { p.broken = err; p.stop() })
	}
}
