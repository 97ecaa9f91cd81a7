package simnet

import "time"

// deadline is a time at which waiting ends; guarded by Network.mu.
type deadline struct {
	timer   *time.Timer
	expired chan struct{} // closes at the time
	closed  bool          // expired was closed without a timer
}

// set replaces the time; the zero time is never.
func (d *deadline) set(t time.Time) {
	if d.timer != nil && !d.timer.Stop() || d.closed || d.expired == nil {
		d.expired = make(chan struct{}) // the old one is closed, or will be at once
	}
	d.timer, d.closed = nil, false
	if t.IsZero() {
		return
	}
	expired := d.expired
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() { close(expired) })
		return
	}
	d.closed = true
	close(expired)
}

// stop ends the timer for good.
func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}
