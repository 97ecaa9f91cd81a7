package report

import (
	"bufio"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

func tool() Tool {
	t := Tool{Version: "devel", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return t
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		t.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			t.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			t.Revision += " (modified)"
		}
	}
	return t
}

func machine() Machine {
	m := Machine{System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU()}
	m.Host, _ = os.Hostname() // an unnamed machine stays unnamed
	m.CPU = firstValue("/proc/cpuinfo", "model name")
	kb, _ := strconv.ParseInt(strings.TrimSuffix(firstValue("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	m.Memory = kb << 10
	return m
}

// firstValue finds "key : value" in a file of /proc; "" where there is none.
func firstValue(path, key string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		k, v, ok := strings.Cut(sc.Text(), ":")
		if ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
