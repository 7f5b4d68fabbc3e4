// Package chatpages puts chat interfaces that others wrote before the fixture chat site: deep-chat and assistant-ui from
// npm, each in a small page of its own. Conversations, scripts and records stay those of the fixture site.
package chatpages

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

//go:embed web/dist
var assets embed.FS

// Names of the interfaces; the site profile of each has the same name.
func Names() []string { return []string{"assistant-ui", "deep-chat"} }

// UI is the interface of a name, for chatlab.Options.UI. The empty name is the fixture site's own page.
func UI(name string) (fs.FS, error) {
	if name == "" {
		return nil, nil
	}
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("no chat interface %q (known: %s)", name, strings.Join(Names(), ", "))
	}
	return fs.Sub(assets, "web/dist/"+name)
}
