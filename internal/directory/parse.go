package directory

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"

	"rollcall/registrar"
)

// Format of a file of users.
type Format string

// The formats that can be read.
const (
	CSV      Format = "csv"      // user,password
	HTDigest Format = "htdigest" // user:realm:HA1, as Apache's htdigest writes it
)

// ErrNoUsers: a file of users has none.
var ErrNoUsers = errors.New("no users in it")

// maxLine bounds a line of a file of users, in bytes.
const maxLine = 64 << 10

// Guess tells the format of a file from its beginning.
func Guess(beginning []byte) Format {
	for line := range bytes.Lines(beginning) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		parts := bytes.Split(line, []byte(":"))
		if len(parts) == 3 && checkHA1(registrar.MD5, string(parts[2])) == nil {
			return HTDigest
		}
		return CSV
	}
	return CSV
}

// listed is one line of a file of users: a password (CSV) or HA1s (htdigest).
type listed struct {
	line     int
	aor      registrar.AOR
	password string
	ha1      map[string]string
}

// Read yields the users of a file, without groups. The first error, which names file
// and line and never shows a password, is the last thing it yields.
func (n Names) Read(format Format, file string, r io.Reader) iter.Seq2[User, error] {
	return n.hash(file, n.list(format, file, r))
}

// Check reads a whole file without making HA1s, and counts its users. It finds what Read would
// find, and users who come twice. A file without any is ErrNoUsers.
func (n Names) Check(format Format, file string, r io.Reader) (users int, err error) {
	lines := map[registrar.AOR]int{}
	for l, err := range n.list(format, file, r) {
		if err != nil {
			return 0, err
		}
		if before, twice := lines[l.aor]; twice {
			return 0, fmt.Errorf("%s:%d: %s stands in line %d already: keep one of the two", file, l.line, l.aor, before)
		}
		lines[l.aor] = l.line
	}
	if len(lines) == 0 {
		return 0, fmt.Errorf("%s: %w: a line is user,password (CSV) or user:realm:HA1 (htdigest)", file, ErrNoUsers)
	}
	return len(lines), nil
}

// at says where in a file an error is; nil stays nil.
func at(file string, line int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s:%d: %w", file, line, err)
}

// list yields the lines of a file.
func (n Names) list(format Format, file string, r io.Reader) iter.Seq2[listed, error] {
	if format == HTDigest {
		return n.listHTDigest(file, r)
	}
	return n.listCSV(file, r)
}

// hashAtOnce is how many users' HA1s are made together, by all processors.
const hashAtOnce = 512

// hash makes users of lines, in their order.
func (n Names) hash(file string, lines iter.Seq2[listed, error]) iter.Seq2[User, error] {
	return func(yield func(User, error) bool) {
		batch := make([]listed, 0, hashAtOnce)
		flush := func() bool {
			defer func() { batch = batch[:0] }()
			users, errs := n.hashAll(batch)
			for i, u := range users {
				if !yield(u, at(file, batch[i].line, errs[i])) || errs[i] != nil {
					return false
				}
			}
			return true
		}
		for l, err := range lines {
			if err != nil {
				if flush() {
					yield(User{}, err)
				}
				return
			}
			if batch = append(batch, l); len(batch) == hashAtOnce && !flush() {
				return
			}
		}
		flush()
	}
}

// hashAll makes the HA1s of a batch.
func (n Names) hashAll(batch []listed) ([]User, []error) {
	users, errs := make([]User, len(batch)), make([]error, len(batch))
	workers := min(runtime.GOMAXPROCS(0), len(batch))
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < len(batch); i += workers {
				l := batch[i]
				users[i] = User{AOR: l.aor, HA1: l.ha1}
				if l.ha1 == nil {
					users[i].HA1, errs[i] = n.HA1s(l.aor, l.password)
				}
			}
		})
	}
	all.Wait()
	return users, errs
}

// listCSV reads lines user,password (RFC 4180). A first line "user,password" is a header.
func (n Names) listCSV(file string, r io.Reader) iter.Seq2[listed, error] {
	return func(yield func(listed, error) bool) {
		in := csv.NewReader(bufio.NewReader(skipBOM(r)))
		in.FieldsPerRecord = -1
		in.Comment = '#'
		in.ReuseRecord = true
		for first := true; ; first = false {
			fields, err := in.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			var broken *csv.ParseError
			if errors.As(err, &broken) {
				yield(listed{}, at(file, broken.Line, broken.Err))
				return
			}
			if err != nil {
				yield(listed{}, fmt.Errorf("%s: %w", file, err))
				return
			}
			if first && isHeader(fields) {
				continue
			}
			line, _ := in.FieldPos(0)
			l, err := n.lineOfCSV(fields)
			l.line = line
			if !yield(l, at(file, line, err)) || err != nil {
				return
			}
		}
	}
}

func isHeader(fields []string) bool {
	return len(fields) == 2 && strings.EqualFold(strings.TrimSpace(fields[1]), "password") &&
		slices.Contains([]string{"user", "username", "name"}, strings.ToLower(strings.TrimSpace(fields[0])))
}

func (n Names) lineOfCSV(fields []string) (listed, error) {
	if len(fields) != 2 {
		return listed{}, fmt.Errorf("%d fields; a line is user,password, with \"quotes\" around a password that has a comma", len(fields))
	}
	a, err := n.AOR(strings.TrimSpace(fields[0]))
	if err != nil {
		return listed{}, err
	}
	if fields[1] == "" {
		return listed{}, fmt.Errorf("user %q has no password", fields[0])
	}
	return listed{aor: a, password: fields[1]}, nil
}

// listHTDigest reads lines user:realm:HA1. Only MD5 is known in such files.
func (n Names) listHTDigest(file string, r io.Reader) iter.Seq2[listed, error] {
	return func(yield func(listed, error) bool) {
		in := bufio.NewScanner(skipBOM(r))
		in.Buffer(nil, maxLine)
		line := 0
		for in.Scan() {
			line++
			text := strings.TrimSpace(in.Text())
			if text == "" || text[0] == '#' {
				continue
			}
			l, err := n.lineOfHTDigest(text)
			l.line = line
			if !yield(l, at(file, line, err)) || err != nil {
				return
			}
		}
		if err := in.Err(); err != nil {
			yield(listed{}, at(file, line+1, err))
		}
	}
}

func (n Names) lineOfHTDigest(text string) (listed, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return listed{}, fmt.Errorf("%d parts; a line is user:realm:HA1", len(parts))
	}
	name, realm, ha1 := parts[0], parts[1], strings.ToLower(parts[2])
	if err := checkHA1(registrar.MD5, ha1); err != nil {
		return listed{}, fmt.Errorf("user %q: %w", name, err)
	}
	withDomain := strings.Contains(name, "@") // what was hashed is the name as it stands here
	if !withDomain && n.Realm == "" {
		name += "@" + realm
	}
	a, err := n.AOR(name)
	if err != nil {
		return listed{}, err
	}
	if want := n.RealmOf(a); realm != want {
		return listed{}, fmt.Errorf("user %q: realm %q, but the pool's is %q: this HA1 would never match", name, realm, want)
	}
	return listed{aor: a, ha1: map[string]string{registrar.HA1Key(registrar.MD5, withDomain): ha1}}, nil
}

// skipBOM drops the byte order mark that some spreadsheets write.
func skipBOM(r io.Reader) io.Reader {
	in := bufio.NewReader(r)
	if mark, err := in.Peek(3); err == nil && string(mark) == "\xef\xbb\xbf" {
		in.Discard(3)
	}
	return in
}
