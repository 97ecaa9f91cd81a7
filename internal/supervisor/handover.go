package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"rollcall/internal/config"
)

// Handover is what a Front End is told by its supervisor, as one line of JSON on
// its standard input. The input then stays open for as long as the supervisor lives.
type Handover struct {
	Link   Link          `json:"link"`
	Config config.Config `json:"config"`
}

// maxHandover bounds the line, in bytes; a pipe holds as much without a reader.
const maxHandover = 60 << 10

func (h Handover) encode() ([]byte, error) {
	data, err := json.Marshal(h)
	if err == nil && len(data) > maxHandover {
		err = fmt.Errorf("the configuration is too long to hand over: %d bytes of %d", len(data), maxHandover)
	}
	return append(data, '\n'), err
}

// ReadHandover reads it. The returned context ends when the input does: the
// supervisor stops this Front End, or is gone. The goroutine that waits for that
// ends only then: a read from a pipe cannot be taken back.
func ReadHandover(ctx context.Context, stdin io.Reader) (Handover, context.Context, error) {
	in := bufio.NewReaderSize(stdin, maxHandover+1)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return Handover{}, nil, fmt.Errorf("no word from the supervisor: %w: this Front End is started by 'rollcall up' only", err)
	}
	var h Handover
	if err := json.Unmarshal(line, &h); err != nil {
		return Handover{}, nil, fmt.Errorf("word from the supervisor: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in)
	}()
	return h, ctx, nil
}
