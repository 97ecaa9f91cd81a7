package natsbus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	headerExpect = "Nats-Expected-Last-Subject-Sequence"
	headerTTL    = "Nats-TTL"
	headerKVOp   = "KV-Operation"
)

// storedMessage is what the leader of a stream returns.
type storedMessage struct {
	Subject string    `json:"subject"`
	Seq     uint64    `json:"seq"`
	Header  []byte    `json:"hdrs"`
	Data    []byte    `json:"data"`
	Time    time.Time `json:"time"`
}

// last reads the newest message of a subject, which may have wildcards, from the
// stream's leader. A direct get may be answered by a replica that lags.
func (b *Bus) last(ctx context.Context, stream, subject string) (storedMessage, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	query, err := json.Marshal(struct {
		LastFor string `json:"last_by_subj"`
	}{subject})
	if err != nil {
		return storedMessage{}, err
	}
	msg, err := b.store.mux.ask(ctx, &nats.Msg{Subject: "$JS.API.STREAM.MSG.GET." + stream, Data: query})
	if err != nil {
		return storedMessage{}, storeError(err)
	}
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message *storedMessage      `json:"message"`
	}
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		return storedMessage{}, fmt.Errorf("answer of the bus: %w", err)
	}
	if answer.Error != nil {
		return storedMessage{}, apiError(answer.Error)
	}
	if answer.Message == nil {
		return storedMessage{}, fmt.Errorf("answer of the bus has no message: %.100q", msg.Data)
	}
	return *answer.Message, nil
}

// storeMsg is a message that is stored only if the subject's newest one is expect.
func storeMsg(subject string, data []byte, expect uint64) *nats.Msg {
	return &nats.Msg{Subject: subject, Data: data, Header: nats.Header{
		headerExpect: {strconv.FormatUint(expect, 10)},
	}}
}

// acked waits for the acknowledgement of a message that was sent.
func (b *Bus) acked(ctx context.Context, c *call) (uint64, error) {
	msg, err := b.store.mux.wait(ctx, c)
	if err != nil {
		return 0, storeError(err)
	}
	return parseAck(msg.Data)
}

// parseAck returns the sequence from an acknowledgement, {"stream":"rollcall_bindings","seq":7}.
// The usual one is read without a JSON decoder, which would be a third of what an append costs.
func parseAck(data []byte) (uint64, error) {
	if rest, ok := bytes.CutPrefix(data, []byte(`{"stream":"`)); ok {
		_, rest, _ = bytes.Cut(rest, []byte(`"`))
		rest, _ = bytes.CutPrefix(rest, []byte(`,"seq":`))
		digits := 0
		for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
			digits++
		}
		if string(rest[digits:]) == "}" {
			if seq, err := strconv.ParseUint(string(rest[:digits]), 10, 64); err == nil && seq > 0 {
				return seq, nil
			}
		}
	}
	var ack struct {
		Error *jetstream.APIError `json:"error"`
		Seq   uint64              `json:"seq"`
	}
	if err := json.Unmarshal(data, &ack); err != nil {
		return 0, fmt.Errorf("acknowledgement of the bus: %w", err)
	}
	if ack.Error != nil {
		return 0, apiError(ack.Error)
	}
	if ack.Seq == 0 {
		return 0, fmt.Errorf("acknowledgement of the bus has no sequence: %.100q", data)
	}
	return ack.Seq, nil
}

func (b *Bus) write(ctx context.Context, msg *nats.Msg) (uint64, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return 0, storeError(err)
	}
	c, err := b.store.mux.send(msg)
	if err != nil {
		return 0, storeError(err)
	}
	return b.acked(ctx, c)
}
