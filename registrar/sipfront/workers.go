package sipfront

import "sync"

// workers runs jobs, each on a goroutine of its own, and keeps some idle ones:
// a REGISTER needs some KB of stack, and growing it anew each time costs more
// than the hand-over. How many jobs there are is bounded by admission.
type workers struct {
	jobs chan func()
	idle chan struct{} // one token for each goroutine that may wait for a next job
	stop chan struct{}
	wg   sync.WaitGroup
}

// maxIdle goroutines wait for jobs; the others end when theirs is done.
const maxIdle = 64

func newWorkers() *workers {
	return &workers{jobs: make(chan func()), idle: make(chan struct{}, maxIdle), stop: make(chan struct{})}
}

func (w *workers) run(job func()) {
	select {
	case w.jobs <- job:
	default:
		w.wg.Go(func() { w.work(job) })
	}
}

func (w *workers) work(job func()) {
	for {
		job()
		select {
		case w.idle <- struct{}{}:
		default:
			return
		}
		select {
		case job = <-w.jobs:
			<-w.idle
		case <-w.stop:
			return
		}
	}
}

// close waits for all jobs. None may be given any more.
func (w *workers) close() {
	close(w.stop)
	w.wg.Wait()
}
