package setup

import (
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

// names are the executables that count as Chromium, the best first.
var names = []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome"}

// Chromium is the path of the browser to start when none is configured: one that the system has installed, else the newest
// that Playwright has. It is empty when there is none.
func Chromium() string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return playwrightsChromium()
}

// playwrightsChromium is the newest build in Playwright's own folder.
func playwrightsChromium() string {
	folder := os.Getenv("PLAYWRIGHT_BROWSERS_PATH")
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		folder = filepath.Join(cache, "ms-playwright")
	}
	newest, path := -1, ""
	for _, layout := range []string{"chrome-linux/chrome", "chrome-linux64/chrome", "chrome-mac/Chromium.app/Contents/MacOS/Chromium"} {
		found, err := filepath.Glob(filepath.Join(folder, "chromium-*", layout))
		if err != nil {
			continue
		}
		for _, candidate := range found {
			build, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(candidate, folder), "/chromium-"), "/")
			if n, err := strconv.Atoi(build); err == nil && n > newest {
				newest, path = n, candidate
			}
		}
	}
	return path
}

func findChromium(ctx context.Context) Finding {
	f := Finding{
		Name: "Chromium",
		Fix:  "apt-get install chromium as root, or install Chrome, or `steward setup` where cdn.playwright.dev can be reached",
	}
	path := Chromium()
	if path == "" {
		f.Detail = "none of " + strings.Join(names, ", ") + " is on the PATH, and Playwright has none"
		return f
	}
	version, err := firstLine(exec.CommandContext(ctx, path, "--version"))
	if err != nil {
		f.Detail = fmt.Sprintf("%s does not run: %v", path, err)
		return f
	}
	return Finding{Name: f.Name, OK: true, Detail: path + ", " + strings.TrimSpace(version)}
}

// installChromium takes the Debian package when this is Debian and root, else the build that Playwright brings.
func installChromium(ctx context.Context, driver Finding, out io.Writer) Finding {
	f := findChromium(ctx)
	if apt, err := exec.LookPath("apt-get"); err == nil && os.Geteuid() == 0 {
		fmt.Fprintln(out, "get      Chromium from the Debian packages")
		for _, args := range [][]string{{"update", "-q"}, {"install", "-q", "-y", "--no-install-recommends", "chromium"}} {
			cmd := exec.CommandContext(ctx, apt, args...)
			cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
			if output, err := cmd.CombinedOutput(); err != nil {
				fmt.Fprintf(out, "failed   apt-get %s: %v: %s\n", args[0], err, lastLine(output))
				break
			}
		}
		if now := findChromium(ctx); now.OK {
			return now
		}
	}
	if !driver.OK {
		f.Detail += "; Playwright's own needs the driver"
		return f
	}
	fmt.Fprintln(out, "get      Chromium from Playwright")
	pw, err := playwright.NewDriver(&playwright.RunOptions{})
	if err != nil {
		f.Detail = err.Error()
		return f
	}
	output, err := bound(ctx, pw.Command("install", "chromium")).CombinedOutput()
	if now := findChromium(ctx); now.OK {
		return now
	}
	f.Detail = fmt.Sprintf("Playwright's install left none behind: %v: %s", errorOrNothing(err), lastLine(output))
	return f
}

func lastLine(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	return lines[len(lines)-1]
}
