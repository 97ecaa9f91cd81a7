package frontend

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"rollcall/registrar"
)

// outcome is what became of a NOTIFY.
type outcome uint8

const (
	arrived outcome = iota + 1
	gone            // the watcher is not there, or does not know of the subscription (RFC 6665 §4.2.2)
	failed          // no answer, or a passing failure
	busy            // there was no room to send it
)

const (
	answerFirst  = 20 * time.Millisecond // a NOTIFY that follows a SUBSCRIBE lets the 200 go first: some watchers insist
	notifyTurn   = 20 * time.Second
	notifyBusy   = time.Second
	mostFailures = 3 // in a row; then the watcher counts as gone
)

// notify tells watchers until ctx ends, and waits for what is under way.
func (f *FrontEnd) notify(ctx context.Context) error {
	g := errgroup.Group{}
	g.SetLimit(notifiesAtOnce)
	defer g.Wait()
	tick := time.NewTicker(min(notifyBusy, f.cfg.NotifyRest))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.notices.wake:
		case <-tick.C:
			f.notices.rested(time.Now())
		}
		for _, w := range f.notices.take() {
			if ctx.Err() != nil {
				return nil
			}
			g.Go(func() error {
				for f.tellNext(ctx, w) {
				}
				return nil
			})
		}
	}
}

// tellNext sends what a watcher is owed. False: nothing more, or not now.
func (f *FrontEnd) tellNext(ctx context.Context, w watcher) bool {
	n, ok := f.nextNotice(ctx, w)
	if !ok {
		return false
	}
	if n.Full {
		pause(ctx, answerFirst)
	}
	what := f.sendNotice(ctx, w.user, n)
	switch {
	case ctx.Err() != nil:
		return false // whoever is primary next tells it again
	case n.Ended != "": // the watcher's own clock ends the subscription if he has not heard
		f.notices.forget(w)
		return false
	case what == arrived:
		f.notices.arrived(w)
		return true
	case what == busy:
		f.notices.rest(w, time.Now().Add(notifyBusy))
		return false
	case what == failed:
		if times := f.notices.failed(w); times < mostFailures {
			f.notices.rest(w, time.Now().Add(f.cfg.NotifyRest<<(times-1)))
			return false
		}
	}
	switch ended, err := f.endSubscription(ctx, w, n.Subscription.CSeq); {
	case err != nil:
		f.notices.rest(w, time.Now().Add(notifyBusy))
		return false
	case ended:
		f.notices.forget(w)
		return false
	}
	return true // he has subscribed again meanwhile
}

// nextNotice takes a watcher's NOTIFY in the user's turn: from then on, further changes make a further one.
func (f *FrontEnd) nextNotice(ctx context.Context, w watcher) (registrar.Notice, bool) {
	ctx, cancel := context.WithTimeout(ctx, notifyTurn)
	defer cancel()
	endTurn, ok := f.turns.take(ctx, w.user)
	if !ok {
		f.notices.rest(w, time.Now().Add(notifyBusy))
		return registrar.Notice{}, false
	}
	defer endTurn()
	own, toMake := f.notices.look(w)
	if !f.serves(own) {
		f.notices.forget(w) // the primary tells it
		return registrar.Notice{}, false
	}
	if toMake {
		_, err := f.change(ctx, own, w.user, func(cur registrar.Set, _ time.Time) registrar.Decision {
			return registrar.Renotify(cur, w.tag)
		})
		if err != nil { // if the group moved, the next look forgets it
			f.notices.rest(w, time.Now().Add(notifyBusy))
			return registrar.Notice{}, false
		}
	}
	return f.notices.claim(w)
}

// serves: this Front End is the ready primary by this copy.
func (f *FrontEnd) serves(own *hotCopy) bool {
	return f.held()[own.group] == own && own.ready.Load()
}

// endSubscription removes the subscription of a watcher who is gone. It reports false if
// he has subscribed again since the SUBSCRIBE with that CSeq.
func (f *FrontEnd) endSubscription(ctx context.Context, w watcher, cseq uint32) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, notifyTurn)
	defer cancel()
	endTurn, ok := f.turns.take(ctx, w.user)
	if !ok {
		return false, context.DeadlineExceeded
	}
	defer endTurn()
	own, _ := f.notices.look(w)
	if !f.serves(own) {
		return true, nil
	}
	_, err = f.change(ctx, own, w.user, func(cur registrar.Set, _ time.Time) registrar.Decision {
		sub, there := cur.FindSubscription(w.tag)
		if ended = !there || sub.CSeq == cseq; !there || !ended {
			return registrar.Decision{}
		}
		return registrar.Decision{Write: true, End: registrar.NoNotice, Next: cur.DropSubscriptions(func(s registrar.Subscription) bool {
			return s.Tag == w.tag
		})}
	})
	return ended, err
}

// tellAll owes every watcher of a promoted copy the whole state. Its old primary may have
// stored a number and died before the NOTIFY left: the full state under the next number mends that.
func (f *FrontEnd) tellAll(own *hotCopy) {
	var watchers []watcher
	for user, data := range own.subscribed() {
		set, err := f.decode(user, data)
		if err != nil {
			continue
		}
		for _, s := range set.Subscriptions {
			watchers = append(watchers, watcher{user, s.Tag})
		}
	}
	if len(watchers) > 0 {
		f.notices.owe(own, watchers)
	}
}
