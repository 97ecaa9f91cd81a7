package harness

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// Softphone is a real softphone without screen and sound. Whether it works is looked up at the
// pool, never in its own log.
type Softphone struct {
	Target    string // host:port of its outbound proxy
	Transport string // "udp" or "tcp"
	User      User
	Expires   int    // seconds it asks for
	Dir       string // for its files; a new folder is made in it
	Ports     *Ports
}

// Baresip starts a baresip that registers.
func (s Softphone) Baresip() (*Process, error) {
	path, err := lookUp("baresip")
	if err != nil {
		return nil, err
	}
	modules, err := baresipModules()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.Dir, "baresip-")
	if err != nil {
		return nil, err
	}
	sip, err := s.Ports.One()
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`poll_method epoll
sip_listen 127.0.0.1:%d
net_interface 127.0.0.1
rtp_ports 40000-40100
module_path %s
module g711.so
module_tmp uuid.so
module_tmp account.so
module_app menu.so
`, sip, modules)
	account := fmt.Sprintf("<sip:%s@%s;transport=%s>;auth_user=%s;auth_pass=%s;regint=%d;outbound=\"sip:%s;transport=%s\"\n",
		s.User.Name, Domain, s.Transport, s.User.Name, s.User.Password, s.Expires, s.Target, s.Transport)
	if err := writeFiles(dir, map[string]string{"config": config, "accounts": account, "contacts": ""}); err != nil {
		return nil, err
	}
	return Start(Spec{Path: path, Args: []string{"-f", dir, "-s"}, Dir: dir, Env: []string{"HOME=" + dir}})
}

func baresipModules() (string, error) {
	for _, dir := range []string{"/usr/lib/baresip/modules", "/usr/local/lib/baresip/modules"} {
		if _, err := os.Stat(filepath.Join(dir, "account.so")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("baresip's modules are in neither /usr/lib nor /usr/local/lib")
}

// Linphone starts a linphonec that registers. It sends its REGISTERs with the address of the target
// in the Request-URI, not the domain: its setting for a route is for other requests.
func (s Softphone) Linphone() (*Process, error) {
	path, err := lookUp("linphonec")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.Dir, "linphone-")
	if err != nil {
		return nil, err
	}
	rtp, err := s.Ports.One()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, ".local/share/linphone"), 0o700); err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(s.Target)
	if err != nil {
		return nil, err
	}
	rc := fmt.Sprintf(`[sip]
default_proxy=0
sip_port=-1
sip_tcp_port=-1
sip_tls_port=-1
guess_hostname=0
contact=sip:%[1]s@%[2]s
register_only_when_network_is_up=0
keepalive_period=30000
[rtp]
audio_rtp_port=%[3]d
[proxy_0]
reg_proxy=<sip:%[6]s;transport=%[5]s>
reg_identity=sip:%[1]s@%[4]s
reg_expires=%[7]d
reg_sendregister=1
publish=0
[auth_info_0]
username=%[1]s
passwd=%[8]s
realm=%[4]s
`, s.User.Name, host, rtp, Domain, s.Transport, s.Target, s.Expires, s.User.Password)
	if err := writeFiles(dir, map[string]string{"rc": rc}); err != nil {
		return nil, err
	}
	return Start(Spec{
		Path: path, Args: []string{"-c", filepath.Join(dir, "rc"), "-d", "5", "-l", filepath.Join(dir, "linphone.log")},
		Dir: dir, Env: []string{"HOME=" + dir, "TERM=dumb"},
	})
}

func writeFiles(dir string, files map[string]string) error {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
