package browser

import (
	"os"
	"os/exec"
	"runtime"
)

// LoginCommand is the plain browser on a profile directory, without automation, for a person who logs in. It keeps its
// secrets where the driven browser looks for them.
func LoginCommand(executable, profileDir, url string) (*exec.Cmd, error) {
	path, err := Executable(executable)
	if err != nil {
		return nil, err
	}
	args := []string{"--user-data-dir=" + profileDir, "--no-first-run", "--no-default-browser-check", "--password-store=basic"}
	if runtime.GOOS == "darwin" {
		args = append(args, "--use-mock-keychain")
	}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	cmd := exec.Command(path, append(args, url)...)
	for name, value := range environment() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd, nil
}
