package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Executable is the configured browser, else the first installed Chrome or Chromium, else the newest build that Playwright
// has installed.
func Executable(configured string) (string, error) {
	if configured != "" {
		path, err := exec.LookPath(configured)
		if err != nil {
			return "", fmt.Errorf("browser executable: %w", err)
		}
		return path, nil
	}
	candidates := []string{"google-chrome", "google-chrome-stable", "chromium", "chromium-browser", "microsoft-edge"}
	if runtime.GOOS == "darwin" {
		candidates = []string{
			"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium",
		}
	}
	for _, name := range candidates {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	if path := playwrightsChromium(); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("no Chrome or Chromium found (looked for %s, and for one of Playwright); install one or name its executable",
		strings.Join(candidates, ", "))
}

// playwrightsChromium is the newest build in the folder where Playwright installs browsers; empty without one.
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
	for _, layout := range []string{"chrome-linux/chrome", "chrome-linux64/chrome", "chrome-mac*/*.app/Contents/MacOS/*"} {
		found, err := filepath.Glob(filepath.Join(folder, "chromium-*", layout))
		if err != nil {
			continue
		}
		for _, candidate := range found {
			name, _, _ := strings.Cut(strings.TrimPrefix(candidate, folder+string(filepath.Separator)), string(filepath.Separator))
			if build, err := strconv.Atoi(strings.TrimPrefix(name, "chromium-")); err == nil && build > newest {
				newest, path = build, candidate
			}
		}
	}
	return path
}
