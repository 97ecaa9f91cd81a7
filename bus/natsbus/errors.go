package natsbus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"rollcall/bus"
)

// isNetError reports whether err is of the network. It doesn't ask for a net.Error, because
// any system call's error is one, a missing file's too. A "remote error" is a TLS refusal.
func isNetError(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && op.Op != "remote error" || errors.As(err, &dns) || errors.Is(err, io.EOF)
}

// unsent turns nats.go's refusal to send into ErrUnavailable, if it is for want of a connection.
func unsent(err error) error {
	switch {
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		return fmt.Errorf("no connection: %w", bus.ErrUnavailable)
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining),
		errors.Is(err, nats.ErrDisconnected), isNetError(err):
		return fmt.Errorf("%w: %w", bus.ErrUnavailable, err)
	}
	return err
}

// storeError turns what went wrong with an operation on the store into the contract's errors.
func storeError(err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil, errors.Is(err, bus.ErrUnavailable):
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("no answer: %w (%w)", bus.ErrUnavailable, err)
	case errors.Is(err, errNoResponders), errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return fmt.Errorf("JetStream doesn't answer: %w", bus.ErrUnavailable)
	case errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("no answer: %w", bus.ErrUnavailable)
	case errors.As(err, &api):
		return apiError(api)
	}
	return unsent(err)
}

func apiError(e *jetstream.APIError) error {
	switch e.ErrorCode {
	// A replicated stream has a code of its own for "somebody else is writing this very moment".
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return fmt.Errorf("%w (%s)", bus.ErrConflict, e.Description)
	case jetstream.JSErrCodeMessageNotFound:
		return bus.ErrNotFound
	}
	if e.Code >= 500 {
		return fmt.Errorf("%w: %s", bus.ErrUnavailable, e.Description)
	}
	return errors.New(e.Description)
}
