package setup

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/mxschmitt/playwright-go"

	"steward/activities/browser"
)

func findChromium(ctx context.Context) Finding {
	f := Finding{
		Name: "Chromium",
		Fix:  "apt-get install chromium as root, or install Chrome, or `steward setup` where cdn.playwright.dev can be reached",
	}
	path, err := browser.Executable("")
	if err != nil {
		f.Detail = err.Error()
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
