package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build compiles the rollcall program into dir. With ROLLCALL_RACE=1 it is built with
// the race detector; a race then shows in the program's output and exit code (66).
func Build(dir string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "rollcall")
	args := []string{"build", "-o", binary}
	if os.Getenv("ROLLCALL_RACE") == "1" {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/rollcall")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build rollcall: %w\n%s", err, out)
	}
	return binary, nil
}

// Root is the folder of the module, found from the working directory.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", fmt.Errorf("find the module: the working directory is in none")
	}
	return filepath.Dir(mod), nil
}

// Missing names the programs of a list that are not installed.
func Missing(programs ...string) []string {
	var missing []string
	for _, name := range programs {
		if _, err := lookUp(name); err != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// lookUp finds a program, also in /usr/sbin, which is not in everybody's PATH.
func lookUp(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return exec.LookPath(filepath.Join("/usr/sbin", name))
}
