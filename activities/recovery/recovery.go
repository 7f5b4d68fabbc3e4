// Package recovery does the physical work of releases on one host: it freezes, builds and stores them, runs the candidate and
// the service, switches between releases under one lock, and brings the service back after a crash with nothing but its files.
// It decides nothing that is the session's to decide: its activities return evidence.
// (Stable A / Candidate B and ReleaseSession authority.)
package recovery

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"steward/activities"
	"steward/activities/recovery/durable"
	"steward/activities/recovery/service"
	"steward/activities/recovery/store"
	"steward/workflows/release/plan"
)

// Options of a Recovery.
type Options struct {
	// Root is the folder of everything that recovery keeps: the store of releases and one folder per instance.
	Root string
	// Launcher is the command that calls service.Launch with one more argument.
	Launcher []string
	// UnitDir is the folder of systemd user units; only for services of that provider.
	UnitDir string
	// Worker is what results say of this process.
	Worker activities.Worker
	// Tries is how often the start of the exact stable release is tried, TryEvery the time between two tries; default 3 and 10 s.
	Tries    int
	TryEvery time.Duration
	// Watchdog are the numbers of the watchdog.
	Watchdog WatchdogOptions
	Log      *slog.Logger
}

// Recovery is the physical release work of one host.
type Recovery struct {
	Options
	store store.Store
	// afterStep is told of every recorded step; tests end the process there.
	afterStep func(step string)
}

// New returns a Recovery on its root folder, which is made when it is missing.
func New(o Options) (*Recovery, error) {
	if !filepath.IsAbs(o.Root) {
		return nil, fmt.Errorf("the folder of recovery has to be an absolute path, not %q", o.Root)
	}
	if len(o.Launcher) == 0 {
		return nil, errors.New("recovery needs the command that launches a service")
	}
	if err := durable.MkdirAll(o.Root); err != nil {
		return nil, err
	}
	o.Tries, o.TryEvery = cmp.Or(o.Tries, 3), cmp.Or(o.TryEvery, 10*time.Second)
	o.Watchdog = o.Watchdog.withDefaults()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Recovery{
		Options: o, store: store.Store{Dir: filepath.Join(o.Root, "store")}, afterStep: func(string) {},
	}, nil
}

// instance is the folder of one installation.
type instance struct {
	name, dir string
}

func (r *Recovery) instance(name string) instance {
	return instance{name, filepath.Join(r.Root, "instances", name)}
}

// instances are all installations of this host.
func (r *Recovery) instances() ([]instance, error) {
	entries, err := os.ReadDir(filepath.Join(r.Root, "instances"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var found []instance
	for _, entry := range entries {
		if entry.IsDir() {
			found = append(found, r.instance(entry.Name()))
		}
	}
	return found, err
}

func (i instance) authorityFile() string { return filepath.Join(i.dir, "authority.json") }
func (i instance) lockFile() string      { return filepath.Join(i.dir, "lock") }
func (i instance) lockRecord() string    { return filepath.Join(i.dir, "lock.json") }
func (i instance) sessions() string      { return filepath.Join(i.dir, "sessions") }
func (i instance) bundles() string       { return filepath.Join(i.dir, "bundles", "known-good") }

func (i instance) session(id string) string      { return filepath.Join(i.sessions(), id) }
func (i instance) steps(id string) string        { return filepath.Join(i.session(id), "steps.json") }
func (i instance) frozenFile(id string) string   { return filepath.Join(i.session(id), "frozen.json") }
func (i instance) builtFile(id string) string    { return filepath.Join(i.session(id), "built.json") }
func (i instance) closedFile(id string) string   { return filepath.Join(i.session(id), "session.json") }
func (i instance) backupFile(id string) string   { return filepath.Join(i.session(id), "backup.db") }
func (i instance) sourceFolder(id string) string { return filepath.Join(i.dir, "sources", id) }
func (i instance) outputs(id string) string      { return filepath.Join(i.session(id), "output") }

// provider runs the services of a contract.
func (r *Recovery) provider(s plan.Service) service.Provider {
	dir := filepath.Join(r.Root, "services")
	if s.Provider == plan.ProviderSystemd {
		return service.Systemd{Dir: dir, Launcher: r.Launcher, UnitDir: r.UnitDir}
	}
	return service.Process{Dir: dir, Launcher: r.Launcher}
}
