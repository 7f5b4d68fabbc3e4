package setup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mxschmitt/playwright-go"
)

// nodeVariable is where playwright-go takes the Node executable from.
const nodeVariable = "PLAYWRIGHT_NODEJS_PATH"

// oldestNode is the oldest major version of Node that the pinned Playwright runs on.
const oldestNode = 20

// findNode takes the Node of the environment variable, else of the PATH, and sets the variable for playwright-go.
func findNode(ctx context.Context) Finding {
	f := Finding{
		Name: "Node",
		Fix:  fmt.Sprintf("install Node %d or newer (Debian: apt-get install nodejs) so that `node` is on the PATH", oldestNode),
	}
	path := os.Getenv(nodeVariable)
	if path == "" {
		found, err := exec.LookPath("node")
		if err != nil {
			f.Detail = "no `node` on the PATH"
			return f
		}
		path = found
	}
	version, err := firstLine(exec.CommandContext(ctx, path, "--version"))
	if err != nil {
		f.Detail = fmt.Sprintf("%s does not run: %v", path, err)
		return f
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		f.Detail = fmt.Sprintf("%s is %s", path, version)
		return f
	}
	if err := os.Setenv(nodeVariable, path); err != nil {
		f.Detail = err.Error()
		return f
	}
	return Finding{Name: f.Name, OK: true, Detail: path + " " + version}
}

// findDriver checks the Playwright driver of the pinned version. Without a Node on the machine it may have brought one.
func findDriver(ctx context.Context, node Finding) Finding {
	f := Finding{Name: "Playwright driver", Fix: "steward setup (needs registry.npmjs.org; PLAYWRIGHT_GO_NPM_REGISTRY names a mirror)"}
	options := &playwright.RunOptions{Stdout: io.Discard, Stderr: io.Discard}
	driver, err := playwright.NewDriver(options)
	if err != nil {
		f.Detail = err.Error()
		return f
	}
	if _, err := os.Stat(filepath.Join(options.DriverDirectory, "package", "cli.js")); err != nil {
		f.Detail = fmt.Sprintf("version %s is not in %s", driver.Version, options.DriverDirectory)
		return f
	}
	version, err := firstLine(bound(ctx, driver.Command("--version")))
	if err != nil || !strings.Contains(version, driver.Version) {
		f.Detail = fmt.Sprintf("%s holds no working version %s (%s %v)", options.DriverDirectory, driver.Version, version, errorOrNothing(err))
		if !node.OK {
			f.Detail += "; Node is missing"
		}
		return f
	}
	return Finding{Name: f.Name, OK: true, Detail: driver.Version + " in " + options.DriverDirectory}
}

// installDriver fetches the driver into a folder beside its place and moves it there when it is complete, so that an
// interrupted setup leaves nothing half done behind.
func installDriver(ctx context.Context, node Finding, out io.Writer) Finding {
	f := findDriver(ctx, node)
	final := &playwright.RunOptions{}
	if _, err := playwright.NewDriver(final); err != nil {
		return f
	}
	fmt.Fprintln(out, "get      Playwright driver from the npm registry")
	parent := filepath.Dir(final.DriverDirectory)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		f.Detail = err.Error()
		return f
	}
	staging, err := os.MkdirTemp(parent, ".setup-*")
	if err != nil {
		f.Detail = err.Error()
		return f
	}
	defer os.RemoveAll(staging)
	driver, err := playwright.NewDriver(&playwright.RunOptions{
		DriverDirectory: staging, SkipInstallBrowsers: true, Stdout: io.Discard, Stderr: io.Discard,
	})
	if err == nil {
		err = driver.Install()
	}
	if err == nil {
		err = os.RemoveAll(final.DriverDirectory)
	}
	if err == nil {
		err = os.Rename(staging, final.DriverDirectory)
	}
	// Another setup at the same time may have been faster: what counts is what is there now.
	if now := findDriver(ctx, node); now.OK || err == nil {
		return now
	}
	f.Detail = err.Error()
	if !node.OK {
		f.Fix = node.Fix + "; then steward setup"
	}
	return f
}

// bound gives a command that a library prepared the life of ctx.
func bound(ctx context.Context, cmd *exec.Cmd) *exec.Cmd {
	bounded := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	bounded.SysProcAttr = cmd.SysProcAttr
	return bounded
}

func firstLine(cmd *exec.Cmd) (string, error) {
	out, err := cmd.Output()
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	return string(line), err
}

func errorOrNothing(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
