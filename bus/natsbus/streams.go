package natsbus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"rollcall/bus"
)

// The layout of a key-value bucket, so that the usual tools can read it.
func bucketStream(bucket string) string     { return "KV_" + bucket }
func bucketSubject(bucket, k string) string { return "$KV." + bucket + "." + k }
func (b *Bus) streamConfigs() []jetstream.StreamConfig {
	table := func(bucket, description string) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name:              bucketStream(bucket),
			Description:       description,
			Subjects:          []string{bucketSubject(bucket, ">")},
			MaxMsgsPerSubject: 1,
			Discard:           jetstream.DiscardNew,
			AllowRollup:       true,
			DenyDelete:        true,
			Storage:           jetstream.FileStorage,
			Replicas:          b.opts.Replicas,
		}
	}
	return []jetstream.StreamConfig{
		table(b.names.poolBucket(), "settings, placement and members of the pool"),
		table(b.names.usersBucket(), "provisioned users"),
		{
			Name:              b.names.log(),
			Description:       "the newest binding set of each user",
			Subjects:          []string{b.names.namespace + ".bindings.*.*"},
			MaxMsgsPerSubject: 1,
			Discard:           jetstream.DiscardOld,
			AllowMsgTTL:       true,
			Storage:           jetstream.FileStorage,
			Replicas:          b.opts.Replicas,
		},
	}
}

// ensureStreams makes the missing streams, and tries until ctx ends while the bus can't:
// a cluster needs a moment to find its leader.
func (b *Bus) ensureStreams(ctx context.Context) error {
	for _, cfg := range b.streamConfigs() {
		for {
			err := b.ensureStream(ctx, cfg)
			if err == nil {
				break
			}
			var differs *differsError
			if errors.As(err, &differs) {
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("make stream %s: %w", cfg.Name, err)
			case <-time.After(redialDelay(0)):
			}
		}
	}
	return nil
}

func (b *Bus) ensureStream(ctx context.Context, want jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	stream, err := b.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = b.js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // somebody was faster
			stream, err = b.js.Stream(ctx, want.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", bus.ErrUnavailable, err)
	}
	return compareStream(stream.CachedInfo().Config, want)
}

// differsError: there is a stream of that name which isn't as we need it.
type differsError struct{ stream, what, has, want string }

func (e *differsError) Error() string {
	return fmt.Sprintf("stream %s on the bus has %s %s, not %s: change it there (nats stream edit), or use another namespace",
		e.stream, e.what, e.has, e.want)
}

func compareStream(has, want jetstream.StreamConfig) error {
	for _, f := range []struct {
		what      string
		has, want any
	}{
		{"replicas", has.Replicas, want.Replicas},
		{"subjects", has.Subjects, want.Subjects},
		{"messages per subject", has.MaxMsgsPerSubject, want.MaxMsgsPerSubject},
		{"storage", has.Storage, want.Storage},
		{"discard policy", has.Discard, want.Discard},
		{"message ttl", has.AllowMsgTTL, want.AllowMsgTTL},
		{"maximum age", has.MaxAge, want.MaxAge},
		{"retention", has.Retention, want.Retention},
	} {
		if h, w := fmt.Sprint(f.has), fmt.Sprint(f.want); h != w {
			return &differsError{has.Name, f.what, h, w}
		}
	}
	return nil
}
