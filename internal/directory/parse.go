package directory

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"rollcall/registrar"
)

// Format of a file of users.
type Format string

// The formats that can be read.
const (
	CSV      Format = "csv"      // user,password
	HTDigest Format = "htdigest" // user:realm:HA1, as Apache's htdigest writes it
)

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

// Read yields the users of a file, without groups. The first error, which names file
// and line and never shows a password, is the last thing it yields.
func (n Names) Read(format Format, file string, r io.Reader) iter.Seq2[User, error] {
	if format == HTDigest {
		return n.readHTDigest(file, r)
	}
	return n.readCSV(file, r)
}

// readCSV reads lines user,password (RFC 4180). A first line "user,password" is a header.
func (n Names) readCSV(file string, r io.Reader) iter.Seq2[User, error] {
	return func(yield func(User, error) bool) {
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
				yield(User{}, fmt.Errorf("%s:%d: %w", file, broken.Line, broken.Err))
				return
			}
			if err != nil {
				yield(User{}, fmt.Errorf("%s: %w", file, err))
				return
			}
			if first && isHeader(fields) {
				continue
			}
			line, _ := in.FieldPos(0)
			u, err := n.userOfCSV(fields)
			if err != nil {
				err = fmt.Errorf("%s:%d: %w", file, line, err)
			}
			if !yield(u, err) || err != nil {
				return
			}
		}
	}
}

func isHeader(fields []string) bool {
	return len(fields) == 2 && strings.EqualFold(strings.TrimSpace(fields[1]), "password") &&
		slices.Contains([]string{"user", "username", "name"}, strings.ToLower(strings.TrimSpace(fields[0])))
}

func (n Names) userOfCSV(fields []string) (User, error) {
	if len(fields) != 2 {
		return User{}, fmt.Errorf("%d fields; a line is user,password, with \"quotes\" around a password that has a comma", len(fields))
	}
	a, err := n.AOR(strings.TrimSpace(fields[0]))
	if err != nil {
		return User{}, err
	}
	if fields[1] == "" {
		return User{}, fmt.Errorf("user %q has no password", fields[0])
	}
	ha1, err := n.HA1s(a, fields[1])
	return User{AOR: a, HA1: ha1}, err
}

// readHTDigest reads lines user:realm:HA1. Only MD5 is known in such files.
func (n Names) readHTDigest(file string, r io.Reader) iter.Seq2[User, error] {
	return func(yield func(User, error) bool) {
		in := bufio.NewScanner(skipBOM(r))
		in.Buffer(nil, maxLine)
		line := 0
		for in.Scan() {
			line++
			text := strings.TrimSpace(in.Text())
			if text == "" || text[0] == '#' {
				continue
			}
			u, err := n.userOfHTDigest(text)
			if err != nil {
				err = fmt.Errorf("%s:%d: %w", file, line, err)
			}
			if !yield(u, err) || err != nil {
				return
			}
		}
		if err := in.Err(); err != nil {
			yield(User{}, fmt.Errorf("%s:%d: %w", file, line+1, err))
		}
	}
}

func (n Names) userOfHTDigest(text string) (User, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return User{}, fmt.Errorf("%d parts; a line is user:realm:HA1", len(parts))
	}
	name, realm, ha1 := parts[0], parts[1], strings.ToLower(parts[2])
	if err := checkHA1(registrar.MD5, ha1); err != nil {
		return User{}, fmt.Errorf("user %q: %w", name, err)
	}
	withDomain := strings.Contains(name, "@") // what was hashed is the name as it stands here
	if !withDomain && n.Realm == "" {
		name += "@" + realm
	}
	a, err := n.AOR(name)
	if err != nil {
		return User{}, err
	}
	if want := n.RealmOf(a); realm != want {
		return User{}, fmt.Errorf("user %q: realm %q, but the pool's is %q: this HA1 would never match", name, realm, want)
	}
	return User{AOR: a, HA1: map[string]string{registrar.HA1Key(registrar.MD5, withDomain): ha1}}, nil
}

// skipBOM drops the byte order mark that some spreadsheets write.
func skipBOM(r io.Reader) io.Reader {
	in := bufio.NewReader(r)
	if mark, err := in.Peek(3); err == nil && string(mark) == "\xef\xbb\xbf" {
		in.Discard(3)
	}
	return in
}
