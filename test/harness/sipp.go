package harness

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// SIPp is a run of one scenario of test/sipp, one call for each user.
type SIPp struct {
	Scenario  string // "register-auth"
	Target    string // host:port
	Transport string // "udp" or "tcp": one socket for all calls
	Users     []User
	Rate      int           // calls started per second
	Pause     time.Duration // between refreshes, for the refresh scenarios
	Refreshes int           // per call
	Dir       string        // for its files; a new folder is made in it
	Port      int           // local port; 0: one that Ports chooses
	Ports     *Ports
}

// SIPpCounts is what SIPp says of a run.
type SIPpCounts struct {
	OK, Failed, Unexpected, Retransmissions int
}

// SIPpRun is a SIPp that runs.
type SIPpRun struct {
	process *Process
	spec    SIPp
	dir     string
}

// Run runs the scenario to its end. Any failed call or unexpected message is an error.
func (s SIPp) Run(ctx context.Context) (SIPpCounts, error) {
	r, err := s.Start()
	if err != nil {
		return SIPpCounts{}, err
	}
	return r.Wait(ctx)
}

// Start starts the scenario.
func (s SIPp) Start() (*SIPpRun, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	path, err := lookUp("sipp")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.Dir, "sipp-")
	if err != nil {
		return nil, err
	}
	if err := writeInjection(filepath.Join(dir, "users.csv"), s.Users); err != nil {
		return nil, err
	}
	port := s.Port
	if port == 0 {
		if port, err = s.Ports.One(); err != nil {
			return nil, err
		}
	}
	mode := map[string]string{"udp": "u1", "tcp": "t1"}[s.Transport]
	args := []string{
		s.Target, "-sf", filepath.Join(root, "test", "sipp", s.Scenario+".xml"), "-inf", "users.csv",
		"-m", strconv.Itoa(len(s.Users)), "-r", strconv.Itoa(max(1, s.Rate)), "-l", strconv.Itoa(len(s.Users)),
		"-d", strconv.FormatInt(s.Pause.Milliseconds(), 10),
		"-i", "127.0.0.1", "-p", strconv.Itoa(port), "-t", mode,
		"-auth_uri", Domain, "-default_behaviors", "all,-bye", "-nostdin", "-buff_size", "4194304",
		"-trace_stat", "-stf", "stat.csv", "-trace_counts", "-fd", "1", "-trace_err", "-error_file", "errors.txt",
	}
	if s.Refreshes > 0 { // sipp crashes when a scenario doesn't have the variable
		args = append(args, "-set", "refreshes", strconv.Itoa(s.Refreshes))
	}
	process, err := Start(Spec{Path: path, Dir: dir, Args: args})
	if err != nil {
		return nil, err
	}
	return &SIPpRun{process: process, spec: s, dir: dir}, nil
}

// Wait waits for the end of the scenario. Any failed call or unexpected message is an error.
func (r *SIPpRun) Wait(ctx context.Context) (SIPpCounts, error) {
	select {
	case <-r.process.Exited():
	case <-ctx.Done():
		_ = r.process.Kill()
		return SIPpCounts{}, fmt.Errorf("sipp %s to %s: %w", r.spec.Scenario, r.spec.Target, ctx.Err())
	}
	c, err := r.counts()
	switch code := r.process.ExitCode(); {
	case err != nil && code != 0:
		err = fmt.Errorf("exit code %d: %s", code, lastLines(r.process.Output(), 5))
	case err != nil:
	case code != 0 || c.Failed > 0 || c.Unexpected > 0 || c.OK != len(r.spec.Users):
		err = fmt.Errorf("%d calls of %d ended well, %d failed, %d messages were unexpected (exit code %d): %s",
			c.OK, len(r.spec.Users), c.Failed, c.Unexpected, code, r.Complaint())
	}
	if err != nil {
		return c, fmt.Errorf("sipp %s to %s over %s: %w", r.spec.Scenario, r.spec.Target, r.spec.Transport, err)
	}
	return c, nil
}

// Kill ends SIPp at once.
func (r *SIPpRun) Kill() error { return r.process.Kill() }

// Pid of the SIPp process.
func (r *SIPpRun) Pid() int { return r.process.Pid() }

// Progress is what SIPp has counted so far, a second ago at most. That SIPp has ended is an error.
func (r *SIPpRun) Progress() (SIPpCounts, error) {
	select {
	case <-r.process.Exited():
		return SIPpCounts{}, fmt.Errorf("sipp ended with exit code %d: %s", r.process.ExitCode(), r.Complaint())
	default:
	}
	return r.counts()
}

// Complaint is the beginning of what SIPp said of calls that failed.
func (r *SIPpRun) Complaint() string {
	b, err := os.ReadFile(filepath.Join(r.dir, "errors.txt"))
	if err != nil {
		return "no error file"
	}
	return string(b[:min(len(b), 1500)])
}

func (r *SIPpRun) counts() (SIPpCounts, error) {
	rows, err := readSemicolons(filepath.Join(r.dir, "stat.csv"))
	if err == nil && len(rows) < 2 {
		err = fmt.Errorf("%d lines", len(rows))
	}
	if err != nil {
		return SIPpCounts{}, fmt.Errorf("statistics of sipp: %w", err)
	}
	last := rows[len(rows)-1]
	var c SIPpCounts
	for i, name := range rows[0] {
		into := map[string]*int{
			"SuccessfulCall(C)": &c.OK, "FailedCall(C)": &c.Failed,
			"FailedUnexpectedMessage(C)": &c.Unexpected, "Retransmissions(C)": &c.Retransmissions,
		}[name]
		if into != nil && i < len(last) {
			*into, _ = strconv.Atoi(last[i])
		}
	}
	return c, nil
}

// Sample is how many REGISTERs a SIPp had sent, and 200s received, at a moment.
type Sample struct {
	At       time.Time
	Sent, OK int
}

// Samples are one a second, as far as they have been written.
func (r *SIPpRun) Samples() ([]Sample, error) {
	files, err := filepath.Glob(filepath.Join(r.dir, "*_counts.csv"))
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("sipp's counts: %d files", len(files))
	}
	rows, err := readSemicolons(files[0])
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("no lines")
	}
	if err != nil {
		return nil, fmt.Errorf("sipp's counts: %w", err)
	}
	var samples []Sample
	for _, row := range rows[1:] {
		s := Sample{}
		for i, name := range rows[0] {
			if i >= len(row) {
				break
			}
			switch {
			case name == "CurrentTime":
				s.At = sippTime(row[i])
			case strings.HasSuffix(name, "_REGISTER_Sent"):
				n, _ := strconv.Atoi(row[i])
				s.Sent += n
			case strings.HasSuffix(name, "_200_Recv"):
				n, _ := strconv.Atoi(row[i])
				s.OK += n
			}
		}
		if !s.At.IsZero() {
			samples = append(samples, s)
		}
	}
	return samples, nil
}

// sippTime reads "2026-01-02\t15:04:05.123456\t1795988933.243464": the last field is Unix time.
func sippTime(s string) time.Time {
	fields := strings.Fields(s)
	if len(fields) == 0 {
		return time.Time{}
	}
	seconds, err := strconv.ParseFloat(fields[len(fields)-1], 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(int64(seconds * 1e6))
}

func readSemicolons(file string) ([][]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.FieldsPerRecord, r.LazyQuotes = ';', -1, true
	return r.ReadAll()
}

func writeInjection(file string, users []User) error {
	var b bytes.Buffer
	b.WriteString("SEQUENTIAL\n")
	for _, u := range users {
		fmt.Fprintf(&b, "%s;[authentication username=%s password=%s]\n", u.Name, u.Name, u.Password)
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}
