package scenario

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Credentials returns user and password of each client.
func (s *Scenario) Credentials() (func(i int) (user, password string), error) {
	if s.Users != "" {
		return fromFile(s.Users, s.Clients)
	}
	format := s.UserFormat
	if format == "" {
		format = "storm%06d"
	}
	if strings.Count(format, "%") != 1 || strings.Contains(fmt.Sprintf(format, 1), "%!") {
		return nil, fmt.Errorf("user_format %q: needs one number, as in u%%d", format)
	}
	password := s.Password
	return func(i int) (string, string) {
		p := strings.ReplaceAll(password, "%d", fmt.Sprint(i))
		if p == "" {
			p = fmt.Sprintf("pw-%d-%d", s.Seed, i) // a throw-away pool's own users
		}
		return fmt.Sprintf(format, i), p
	}, nil
}

func fromFile(path string, n int) (func(int) (string, string), error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	r.Comment = '#'
	rows := make([][2]string, 0, n)
	for len(rows) < n {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s has %d users for %d clients", path, len(rows), n)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(row) < 2 {
			line, _ := r.FieldPos(0)
			return nil, fmt.Errorf("%s:%d: needs user,password", path, line)
		}
		if len(rows) == 0 && row[0] == "user" && row[1] == "password" {
			continue // a heading
		}
		user, _, _ := strings.Cut(row[0], "@")
		rows = append(rows, [2]string{user, row[1]})
	}
	return func(i int) (string, string) { return rows[i][0], rows[i][1] }, nil
}
