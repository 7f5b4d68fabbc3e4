package browser

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mxschmitt/playwright-go"
)

// snapshot keeps a picture of a page that was not understood, on this host only and only when that is switched on. It
// returns its file; empty when there is none.
func (b *Browser) snapshot(t *tab, effect string) string {
	if !b.opts.Screenshots || b.opts.SnapshotDir == "" || t == nil || t.lost() {
		return ""
	}
	if err := os.MkdirAll(b.opts.SnapshotDir, 0o700); err != nil {
		b.log.Warn("snapshot", "error", err)
		return ""
	}
	path := filepath.Join(b.opts.SnapshotDir, filepath.Base(effect)+"-"+time.Now().UTC().Format("20060102T150405")+".png")
	picture, err := within(lookLimit+time.Second, func() ([]byte, error) {
		return t.page.Screenshot(playwright.PageScreenshotOptions{Timeout: ms(lookLimit)})
	})
	if err == nil {
		err = os.WriteFile(path, picture, 0o600)
	}
	if err != nil {
		b.log.Warn("snapshot", "effect", effect, "error", firstLine(err))
		return ""
	}
	b.log.Info("snapshot", "effect", effect, "file", path)
	b.trimSnapshots()
	return path
}

// pictured adds to a detail where the picture is.
func pictured(detail, file string) string {
	if file == "" {
		return detail
	}
	return detail + "; picture: " + file
}

// maxSnapshots bounds the folder; the oldest go first.
const maxSnapshots = 100

func (b *Browser) trimSnapshots() {
	files, err := filepath.Glob(filepath.Join(b.opts.SnapshotDir, "*.png"))
	if err != nil || len(files) <= maxSnapshots {
		return
	}
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(taken(a), taken(b)) })
	for _, file := range files[:len(files)-maxSnapshots] {
		if err := os.Remove(file); err != nil {
			b.log.Warn("snapshot", "error", err)
		}
	}
}

// taken is the time in a snapshot's name.
func taken(file string) string { return file[strings.LastIndexByte(file, '-')+1:] }
