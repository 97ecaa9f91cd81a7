package loadtest

import (
	"net"
	"os/exec"
	"syscall"
	"time"
)

// group puts a command into a process group of its own.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends the processes of a group that group made; it may have ended already.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

func listens(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
