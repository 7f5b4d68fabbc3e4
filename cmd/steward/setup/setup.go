// Package setup finds what the browser target needs on this machine (Node, the Playwright driver, Chromium) and installs
// what is missing. Every step may be repeated; a finished one only says what it found.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Finding is one prerequisite as it stands on this machine.
type Finding struct {
	// Name is what was looked for; Detail where it is, or why it cannot be used.
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	// Fix is what a person can do by hand, in one line; empty when OK.
	Fix string `json:"fix,omitempty"`
}

// String is one line for a terminal.
func (f Finding) String() string {
	if f.OK {
		return fmt.Sprintf("ok       %s: %s", f.Name, f.Detail)
	}
	return fmt.Sprintf("missing  %s: %s. By hand: %s", f.Name, strings.TrimSuffix(f.Detail, "."), f.Fix)
}

// Check looks at every prerequisite and changes nothing.
func Check(ctx context.Context) []Finding {
	node := findNode(ctx)
	return []Finding{node, findDriver(ctx, node), findChromium(ctx)}
}

// Run installs what is missing, and writes one line per prerequisite to out. The error counts what is still missing; it
// is nil when a browser can be driven.
func Run(ctx context.Context, out io.Writer) error {
	node := findNode(ctx)
	driver := findDriver(ctx, node)
	if !driver.OK {
		driver = installDriver(ctx, node, out)
	}
	if !node.OK && driver.OK {
		node = Finding{Name: node.Name, OK: true, Detail: "the one installed beside the driver"}
	}
	chromium := findChromium(ctx)
	if !chromium.OK {
		chromium = installChromium(ctx, driver, out)
	}
	var missing []string
	for _, f := range []Finding{node, driver, chromium} {
		if _, err := fmt.Fprintln(out, f); err != nil {
			return err
		}
		if !f.OK {
			missing = append(missing, f.Name)
		}
	}
	if len(missing) > 0 {
		return errors.New("setup could not get: " + strings.Join(missing, ", "))
	}
	return nil
}
