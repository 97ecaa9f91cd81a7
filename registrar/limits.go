package registrar

// checkLimits: the number of contacts. Only a new contact can be one too many.
func (w *work) checkLimits() *Reply {
	most, count := w.policy.MaxContacts, 0
	for i := range w.slots {
		if w.slots[i].state != removed {
			count++
		}
	}
	if most <= 0 || count <= most || !w.creates() {
		return nil
	}
	if w.policy.WhenFull == ReplaceOldest {
		for ; count > most && w.evictOldest(); count-- {
		}
		if count <= most {
			return nil
		}
	}
	return w.full()
}

// full is the refusal of one more contact.
func (w *work) full() *Reply {
	if w.policy.WhenFull == RefuseUnavailable {
		return refuse(503)
	}
	return refuse(403)
}

// creates: the request has a new contact.
func (w *work) creates() bool {
	for i := len(w.live); i < len(w.slots); i++ {
		if w.slots[i].state == put {
			return true
		}
	}
	return false
}

// evictOldest gives up the binding that was refreshed longest ago and has no part in this request.
func (w *work) evictOldest() bool {
	oldest := -1
	for i := range w.live {
		if w.slots[i].state == kept && (oldest < 0 || w.live[i].Refreshed.Before(w.live[oldest].Refreshed)) {
			oldest = i
		}
	}
	if oldest < 0 {
		return false
	}
	w.slots[oldest].state, w.slots[oldest].evicted = removed, true
	return true
}

// fits: a record may not grow beyond its limit. A refresh may, since it is never
// refused, but not beyond refreshMargin of it: a client could make it longer each time.
func (w *work) fits(next *Set) bool {
	limit := w.policy.MaxRecord
	if limit <= 0 {
		limit = DefaultMaxRecord
	}
	size := next.size()
	if size <= limit || size <= w.cur.size() {
		return true
	}
	return !w.creates() && size <= limit+limit/refreshMargin
}

// refreshMargin is the part of the limit that refreshes may take beyond it: a quarter.
const refreshMargin = 4

// size is a little above the length of the stored form.
func (s *Set) size() int {
	n := recordHeader + 8
	for i := range s.Bindings {
		b := &s.Bindings[i]
		n += 116 + len(b.URI) + len(b.Instance) + len(b.Params) + len(b.Display) + len(b.CallID) + len(b.Branch) + len(b.UserAgent) +
			len(b.Flow.FrontEnd) + len(b.Flow.Boot) + len(b.Flow.Transport) + len(b.Flow.Local) + len(b.Flow.Remote)
		if b.Generation != 0 {
			n += 10
		}
		for _, path := range b.Path {
			n += 4 + len(path)
		}
	}
	for i := range s.Removed {
		r := &s.Removed[i]
		n += 36 + len(r.URI) + len(r.CallID) + len(r.Branch)
	}
	return n + 32*len(s.Nonces)
}
