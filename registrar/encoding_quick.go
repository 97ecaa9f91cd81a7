package registrar

import "math"

// quick reads a set as EncodeSet writes it: bindings and nonces only, small integers as keys in
// rising order. It reports false for anything else, which the general decoder then judges. That one takes
// nearly twice as long, with 14 allocations for 4, and a set is read for each REGISTER.
func (w *storedSet) quick(body []byte) bool {
	r := quickReader{s: string(body)} // of which all strings are parts
	r.each(func(key uint64) {
		switch key {
		case 1:
			w.Bindings = make([]storedBinding, r.count(majorArray))
			for i := range w.Bindings {
				w.Bindings[i].quick(&r)
			}
		case 3:
			w.Nonces = make([]storedNonce, r.count(majorArray))
			for i := range w.Nonces {
				w.Nonces[i].quick(&r)
			}
		default:
			r.fail()
		}
	})
	return !r.failed && r.s == ""
}

func (b *storedBinding) quick(r *quickReader) {
	r.each(func(key uint64) {
		switch key {
		case 1:
			b.URI = r.text()
		case 2:
			b.Q = int(r.number(math.MaxInt32))
		case 3:
			b.Instance = r.text()
		case 4:
			b.RegID = uint32(r.number(math.MaxUint32))
		case 5:
			b.Params = r.text()
		case 6:
			b.CallID = r.text()
		case 7:
			b.CSeq = uint32(r.number(math.MaxUint32))
		case 8:
			b.Branch = r.text()
		case 10:
			b.UserAgent = r.text()
		case 11:
			b.Flow.quick(r)
		case 12:
			b.Created = int64(r.number(math.MaxInt64))
		case 13:
			b.Refreshed = int64(r.number(math.MaxInt64))
		case 14:
			b.Expires = int64(r.number(math.MaxInt64))
		case 15:
			b.Generated = r.number(math.MaxUint64)
		case 16:
			b.Display = r.text()
		default:
			r.fail()
		}
	})
}

func (f *Flow) quick(r *quickReader) {
	r.each(func(key uint64) {
		switch key {
		case 1:
			f.FrontEnd = r.text()
		case 2:
			f.Boot = r.text()
		case 3:
			f.Transport = r.text()
		case 4:
			f.Local = r.text()
		case 5:
			f.Remote = r.text()
		case 6:
			f.ID = r.number(math.MaxUint64)
		default:
			r.fail()
		}
	})
}

func (n *storedNonce) quick(r *quickReader) {
	r.each(func(key uint64) {
		switch key {
		case 1:
			n.ID = r.number(math.MaxUint64)
		case 2:
			n.NC = uint32(r.number(math.MaxUint32))
		case 3:
			n.Until = int64(r.number(math.MaxInt64))
		default:
			r.fail()
		}
	})
}

// The major types of CBOR that occur (RFC 8949 §3.1).
const (
	majorUint  = 0
	majorText  = 3
	majorArray = 4
	majorMap   = 5
)

// quickReader reads items of CBOR off a string. After a failure it reads nothing more.
type quickReader struct {
	s      string
	failed bool
}

func (r *quickReader) fail() { r.failed, r.s = true, "" }

// head reads an item's argument; 0 when it is of another type.
func (r *quickReader) head(major byte) uint64 {
	if r.s == "" || r.s[0]>>5 != major {
		r.fail()
		return 0
	}
	n := uint64(r.s[0] & 31)
	r.s = r.s[1:]
	if n < 24 {
		return n
	}
	size := 1 << (n - 24) // bytes
	if n > 27 || len(r.s) < size {
		r.fail()
		return 0
	}
	n = 0
	for i := range size {
		n = n<<8 | uint64(r.s[i])
	}
	r.s = r.s[size:]
	return n
}

func (r *quickReader) number(most uint64) uint64 {
	n := r.head(majorUint)
	if n > most {
		r.fail()
		return 0
	}
	return n
}

func (r *quickReader) text() string {
	n := r.head(majorText)
	if n > uint64(len(r.s)) {
		r.fail()
		return ""
	}
	s := r.s[:n]
	r.s = r.s[n:]
	return s
}

// count reads the number of elements; each is a byte at least.
func (r *quickReader) count(major byte) int {
	n := r.head(major)
	if n > uint64(len(r.s)) || n > maxBindings {
		r.fail()
		return 0
	}
	return int(n)
}

// each calls value for each pair of a map, its keys in rising order.
func (r *quickReader) each(value func(key uint64)) {
	last := uint64(0)
	for range r.count(majorMap) {
		key := r.number(math.MaxUint8)
		if key <= last {
			r.fail()
		}
		if r.failed {
			return
		}
		value(key)
		last = key
	}
}
