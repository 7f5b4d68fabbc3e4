package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"steward/worker/embedded"
)

// killable is a stack of its own whose server and deciding worker are processes that a test may kill or freeze.
type killable struct {
	*stack
	server, worker *victim
}

var (
	killables    *killable
	killablesErr error
	killableOnce sync.Once
)

// startKillable starts it once for all tests that kill servers. They take turns: none of them may be parallel.
func startKillable(t *testing.T) *killable {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a server and a browser")
	}
	killableOnce.Do(func() { killables, killablesErr = newKillable() })
	require.NoError(t, killablesErr)
	return killables
}

func stopKillable() {
	if killables != nil {
		killables.close()
	}
}

func newKillable() (*killable, error) {
	s, err := newSite()
	if err != nil {
		return nil, err
	}
	// Many runs share one browser and few processors here: it looks at its pages less often.
	if err := s.tune("look: 100ms", "look: 300ms"); err != nil {
		return nil, err
	}
	k, err := serveKillable(s)
	if err != nil {
		return k, err
	}
	k.worker = s.command("worker", "--roles", "run,checks", "--stop-timeout", "11s")
	s.stop = append(s.stop, k.worker.end)
	return k, k.worker.start()
}

// tune changes the profile of the chat site, before anything has read it.
func (s *stack) tune(from, to string) error {
	path := filepath.Join(s.sitesDir, "chatlab.yaml")
	profile, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(profile), from) {
		return errors.Join(err, fmt.Errorf("%s has no %q", path, from))
	}
	return os.WriteFile(path, []byte(strings.Replace(string(profile), from, to, 1)), 0o600)
}

// serveKillable starts the server of a stack.
func serveKillable(s *stack) (*killable, error) {
	k := &killable{stack: s}
	k.server = s.command("server", "--data-dir", s.serverData(), "--port", "0", "--ui-port", "-1")
	s.stop = append(s.stop, k.server.end)
	if err := k.server.start(); err != nil {
		return k, err
	}
	return k, s.dial()
}

// victim is a process of the real command, or of a browser, that a test strikes and brings back.
type victim struct {
	name string
	make func() *exec.Cmd
	cmd  *exec.Cmd
	log  string
}

// command is a process of the steward command against this stack.
func (s *stack) command(verb string, args ...string) *victim {
	return &victim{name: verb, log: filepath.Join(s.dir, "steward-"+verb+".log"), make: func() *exec.Cmd {
		cmd := exec.Command(binary, append([]string{verb}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+s.dir, "XDG_CONFIG_HOME="+filepath.Join(s.dir, "config"), "STEWARD_DATA_DIR="+s.serverData(),
			"STEWARD_SITES_DIR="+s.sitesDir, "STEWARD_WORKER_HOST=test", "STEWARD_TEMPORAL_ADDRESS="+s.endpoint.Address,
			"STEWARD_TEMPORAL_NAMESPACE="+s.endpoint.Namespace, "STEWARD_CHECKS_ROOTS="+s.dir, "STEWARD_CHECKS_COMMANDS=*")
		return cmd
	}}
}

func (v *victim) start() error {
	log, err := os.OpenFile(v.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	v.cmd = v.make()
	v.cmd.Stdout, v.cmd.Stderr = log, log
	return v.cmd.Start()
}

func (v *victim) end() { terminate(v.cmd) }

// kill ends the process as a crash would, and waits until it is gone.
func (v *victim) kill() error {
	err := v.cmd.Process.Kill()
	_ = v.cmd.Wait()
	return err
}

func (v *victim) restart() error {
	if err := v.kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return v.start()
}

// restartServer kills the server and waits until it serves again: a worker that starts before ends with an error.
func (k *killable) restartServer() error {
	if err := k.server.restart(); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, err := k.client.CheckHealth(ctx, &client.CheckHealthRequest{})
		if cancel(); err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// serverData is the data folder of the stack's server.
func (s *stack) serverData() string { return filepath.Join(s.dir, "data") }

// dial waits for the server and connects to it. A server that is started again comes back on the same port.
func (s *stack) dial() error {
	deadline := time.Now().Add(time.Minute)
	for {
		var err error
		if s.endpoint, err = embedded.ReadEndpoint(filepath.Join(s.serverData(), "server")); err == nil {
			if s.client, err = client.Dial(client.Options{HostPort: s.endpoint.Address, Namespace: s.endpoint.Namespace, Logger: quiet()}); err == nil {
				s.stop = append(s.stop, s.client.Close)
				return nil
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server does not answer: %w", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// chromium is the process of the browser that a browser worker started.
func (p *browserProcess) chromium() (*os.Process, error) {
	data, err := os.ReadFile(p.spec.ProfileDir + ".browser.json")
	if err != nil {
		return nil, err
	}
	var own struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal(data, &own); err != nil {
		return nil, err
	}
	return os.FindProcess(own.PID)
}
