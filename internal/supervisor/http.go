package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"rollcall/internal/control"
	"rollcall/routing"
)

const (
	answerWithin = 3 * time.Second
	maxAnswers   = 8 // under way at once; more wait
)

type statusFunc func(context.Context) (control.Status, error)

// serveHTTP answers /status, /healthz and /metrics until ctx ends.
func serveHTTP(ctx context.Context, l net.Listener, status statusFunc) error {
	server := &http.Server{
		Handler: handler(status), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	stopped := make(chan struct{})
	defer func() { <-stopped }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(stopped)
		<-ctx.Done()
		closing, done := context.WithTimeout(context.Background(), time.Second)
		defer done()
		if server.Shutdown(closing) != nil {
			server.Close()
		}
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("http: %w", err)
	}
	return nil
}

func handler(status statusFunc) http.Handler {
	status = limited(status)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		s, err := status(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(s)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		s, err := status(r.Context())
		if err == nil {
			err = unwell(s)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(status))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

// limited bounds how many questions to the pool are under way, and how long one takes.
func limited(status statusFunc) statusFunc {
	slots := make(chan struct{}, maxAnswers)
	return func(ctx context.Context) (control.Status, error) {
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			return status(ctx)
		case <-ctx.Done():
			return control.Status{}, errors.New("too many questions at once: ask again later")
		}
	}
}

// unwell says why a pool cannot serve all of its users.
func unwell(s control.Status) error {
	if s.Epoch == 0 {
		return errors.New("the groups are not placed yet")
	}
	state := map[routing.FrontEnd]routing.State{}
	for _, fe := range s.FrontEnds {
		state[fe.Name] = fe.State
	}
	for _, g := range s.Groups {
		if g.Primary == nil {
			return fmt.Errorf("group %s has no primary", g.ID)
		}
		if st := state[*g.Primary]; st != routing.Up && st != routing.Draining {
			return fmt.Errorf("the primary of group %s, %s, is %s", g.ID, *g.Primary, st)
		}
	}
	return nil
}
