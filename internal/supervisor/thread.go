package supervisor

import "runtime"

// thread runs functions on one operating-system thread that lives until close.
// Linux ties a child's parent-death signal to the thread that started it, not to
// the process: started anywhere else, a child dies when the Go runtime retires that thread.
type thread struct {
	calls chan func()
	ended chan struct{}
}

func newThread() *thread {
	t := &thread{calls: make(chan func()), ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for call := range t.calls {
			call()
		}
	}()
	return t
}

// do runs f on the thread and waits for it.
func (t *thread) do(f func()) {
	done := make(chan struct{})
	t.calls <- func() {
		defer close(done)
		f()
	}
	<-done
}

// close ends the thread, and with it whatever children are left.
func (t *thread) close() {
	close(t.calls)
	<-t.ended
}
