package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is Linux's unit of utime and stime: USER_HZ is 100 on every architecture that Go runs on.
const clockTick = 10 * time.Millisecond

// CPU is the processor time, user and system, that processes have used.
func CPU(pids ...int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		fields, err := statFields(pid)
		if err != nil {
			return 0, err
		}
		// Fields 14 and 15 of proc(5), counted from 1; fields begins at the third.
		for _, f := range fields[11:13] {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("processor time of pid %d: %w", pid, err)
			}
			sum += time.Duration(n) * clockTick
		}
	}
	return sum, nil
}

// Memory is the resident memory of processes in bytes. A page that several processes share is divided among
// them (PSS), so that the sum over processes that share memory is right.
func Memory(pids ...int) (int64, error) {
	var sum int64
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, err
		}
		_, rest, ok := strings.Cut(string(b), "\nPss:")
		fields := strings.Fields(rest)
		if !ok || len(fields) == 0 {
			return 0, fmt.Errorf("memory of pid %d: no Pss in smaps_rollup", pid)
		}
		kib, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("memory of pid %d: %w", pid, err)
		}
		sum += kib << 10
	}
	return sum, nil
}

// Tree is a process and all its descendants.
func Tree(root int) ([]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, f := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			continue
		}
		fields, err := statFields(pid)
		if err != nil {
			continue // it has ended meanwhile
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	pids := []int{root}
	for i := 0; i < len(pids); i++ {
		pids = append(pids, children[pids[i]]...)
	}
	return pids, nil
}

// statFields are the fields of /proc/PID/stat from the third, the state, on.
func statFields(pid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	s := string(b)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(fields) < 22 {
		return nil, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return fields, nil
}
