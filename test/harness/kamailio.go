package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Kamailio is a running Kamailio with the configuration of test/kamailio: a plain registrar in memory.
type Kamailio struct {
	Target  string // host:port, UDP and TCP
	process *Process
}

// StartKamailio starts one and waits until it answers. With users it asks for their passwords.
func StartKamailio(ctx context.Context, dir string, ports *Ports, workers int, users []User) (*Kamailio, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	path, err := lookUp("kamailio")
	if err != nil {
		return nil, err
	}
	if dir, err = os.MkdirTemp(dir, "kamailio-"); err != nil {
		return nil, err
	}
	port, err := ports.One()
	if err != nil {
		return nil, err
	}
	k := &Kamailio{Target: local(port)}
	args := []string{
		"-DD", "-E", "-f", filepath.Join(root, "test", "kamailio", "kamailio.cfg"), "-Y", dir, "-P", filepath.Join(dir, "pid"),
		"-m", "1024", "-M", "32",
		"-A", "LISTEN_UDP=udp:" + k.Target, "-A", "LISTEN_TCP=tcp:" + k.Target, "-A", "WORKERS=" + strconv.Itoa(workers),
	}
	if len(users) > 0 {
		if err := writeHA1Table(dir, users); err != nil {
			return nil, err
		}
		args = append(args, "-A", "WITH_AUTH", "-A", `USERDB="text://`+dir+`"`)
	}
	if k.process, err = Start(Spec{Path: path, Args: args, Dir: dir}); err != nil {
		return nil, err
	}
	if err := k.ready(ctx); err != nil {
		_ = k.Stop()
		return nil, err
	}
	return k, nil
}

// ready waits for the answer to a REGISTER of nobody: 200 without passwords, 401 with.
func (k *Kamailio) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	probe, err := NewPhones("probe", []User{{Name: "probe"}})
	if err != nil {
		return err
	}
	defer probe.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := probe.All()[0].Register(ctx, k.Target, 60)
		answered <- err
	}()
	select {
	case err = <-answered:
	case <-k.process.Exited():
		cancel()
		<-answered
		err = fmt.Errorf("it ended")
	}
	if err != nil {
		return fmt.Errorf("start kamailio: %w:\n%s", err, lastLines(k.process.Output(), 10))
	}
	return nil
}

// Pids are all its processes: the main one and its children.
func (k *Kamailio) Pids() ([]int, error) { return Tree(k.process.Pid()) }

// Stop ends it, and those of its children that outlive its main process.
func (k *Kamailio) Stop() error {
	pids, err := k.Pids()
	if err != nil {
		return err
	}
	err = k.process.Stop(10 * time.Second)
	for _, pid := range pids {
		if Alive(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may just have ended
		}
	}
	return err
}

// writeHA1Table writes a db_text database with the table ha1 of Kamailio's module htable.
func writeHA1Table(dir string, users []User) error {
	var b strings.Builder
	b.WriteString("id(int,auto) key_name(string) key_type(int) value_type(int) key_value(string) expires(int)\n")
	for i, u := range users {
		fmt.Fprintf(&b, "%d:%s:0:0:%s:0\n", i+1, u.Name, hexMD5(u.Name+":"+Domain+":"+u.Password))
	}
	return writeFiles(dir, map[string]string{
		"version": "table_name(string) table_version(int)\nha1:2\n", "ha1": b.String(),
	})
}
