package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"steward/cmd/steward/setup"
	"steward/config"
	"steward/worker"
	"steward/workflows"
)

func newDoctorCommand(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", Short: "Tell what is missing or wrong here, with the fix for each", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := app.diagnose(cmd.Context())
			err := app.answer(findings, func(w io.Writer) {
				for _, f := range findings {
					app.writeFinding(w, f)
				}
			})
			if err == nil && slices.ContainsFunc(findings, func(f setup.Finding) bool { return !f.OK }) {
				err = exitWith(exitFailed, "something is missing or wrong; see above")
			}
			return err
		},
	}
	connectionFlags(cmd)
	return cmd
}

func (a *app) writeFinding(w io.Writer, f setup.Finding) {
	if f.OK {
		fmt.Fprintf(w, "%s %s: %s\n", a.paint(green, "✓"), f.Name, f.Detail)
		return
	}
	fmt.Fprintf(w, "%s %s: %s\n  → %s\n", a.paint(red, "✗"), f.Name, f.Detail, strings.ReplaceAll(f.Fix, "\n", "\n    "))
}

const doctorTime = 30 * time.Second

// diagnose looks at everything that a run needs on this machine.
func (a *app) diagnose(ctx context.Context) []setup.Finding {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	findings := []setup.Finding{a.settingsFinding(), a.sitesFinding(), a.dataFinding()}
	if slices.Contains(a.settings.Worker.Roles, string(worker.RoleBrowser)) {
		findings = append(findings, setup.Check(ctx)...)
		findings = append(findings, a.browserFindings()...)
	}
	return append(findings, a.serverFindings(ctx)...)
}

func good(name, format string, args ...any) setup.Finding {
	return setup.Finding{Name: name, OK: true, Detail: fmt.Sprintf(format, args...)}
}

func bad(name string, err error, fix string) setup.Finding {
	return setup.Finding{Name: name, Detail: err.Error(), Fix: fix}
}

func (a *app) settingsFinding() setup.Finding {
	return good("settings", "%s", cmp.Or(a.settings.File, "no settings file, all defaults"))
}

func (a *app) sitesFinding() setup.Finding {
	registry, err := a.sites()
	if err != nil {
		return bad("site profiles", err, "mend or remove the profile in "+a.settings.SitesDir)
	}
	return good("site profiles", "%s", strings.Join(registry.Names(), ", "))
}

// dataFinding tries what a worker will do in its data folder.
func (a *app) dataFinding() setup.Finding {
	dir := a.settings.DataDir
	probe := filepath.Join(dir, ".doctor")
	if err := writeFile(probe, nil); err != nil {
		return bad("data folder", err, "make "+dir+" writable for this user, or set data_dir")
	}
	if err := os.Remove(probe); err != nil {
		return bad("data folder", err, "make "+dir+" writable for this user, or set data_dir")
	}
	info, err := os.Stat(dir)
	if err != nil {
		return bad("data folder", err, "set data_dir to a folder of this user")
	}
	if open := info.Mode().Perm() & 0o077; open != 0 {
		return bad("data folder", fmt.Errorf("%s has mode %o; it holds logins", dir, info.Mode().Perm()), "chmod 700 "+dir)
	}
	return good("data folder", "%s", dir)
}

func (a *app) browserFindings() []setup.Finding {
	var findings []setup.Finding
	for _, b := range a.settings.Browsers {
		name := "browser " + b.Name
		registry, err := a.sites()
		if err != nil {
			continue // sitesFinding tells
		}
		site, err := registry.Site(b.Site)
		switch {
		case err != nil:
			findings = append(findings, bad(name, err, "set browsers[].site to a known profile"))
			continue
		case b.Mode == config.CDP:
			findings = append(findings, cdpFinding(name, b))
			continue
		case b.Headed.Resolve(site.Headed) && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
			findings = append(findings, bad(name, errors.New("it shows a window, and there is no display"),
				"start the worker where DISPLAY or WAYLAND_DISPLAY is set, or under xvfb-run; headed: false where the site allows it"))
			continue
		}
		findings = append(findings, good(name, "profile directory %s; `steward browser login --browser %s` logs in, `steward browser probe` asks",
			b.ProfileDir, b.Name))
	}
	return findings
}

// cdpFinding asks whether a browser answers at the address that a login attaches to.
func cdpFinding(name string, b config.Browser) setup.Finding {
	asking := http.Client{Timeout: 2 * time.Second}
	answer, err := asking.Get(strings.TrimSuffix(b.CDPURL, "/") + "/json/version")
	if err == nil {
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return good(name, "attaches to the browser at %s, if it runs on %s", b.CDPURL, b.ProfileDir)
		}
		err = fmt.Errorf("%s answers %s", b.CDPURL, answer.Status)
	}
	port := "9222"
	if u, parsed := url.Parse(b.CDPURL); parsed == nil && u.Port() != "" {
		port = u.Port()
	}
	return bad(name, err, fmt.Sprintf("start your browser with --remote-debugging-port=%s --user-data-dir=%q", port, b.ProfileDir))
}

func (a *app) serverFindings(ctx context.Context) []setup.Finding {
	c, connection, err := a.dial(ctx, currentUser())
	if err != nil {
		return []setup.Finding{bad("Temporal server", err, "steward up; or set temporal.address or temporal.profile")}
	}
	defer c.Close()
	namespace := cmp.Or(connection.Options.Namespace, client.DefaultNamespace)
	found := good("Temporal server", "%s, namespace %s", cmp.Or(connection.Options.HostPort, client.DefaultHostPort), namespace)
	if connection.UI != "" {
		found.Detail += ", Web UI " + connection.UI
	}
	findings := []setup.Finding{found}
	if err := worker.CheckSearchAttributes(ctx, c, namespace); err != nil {
		findings = append(findings, bad("search attributes", err, "run the command above"))
	} else {
		findings = append(findings, good("search attributes", "all there"))
	}
	findings = append(findings,
		queueFinding(ctx, c, workflows.QueueRun, enumspb.TASK_QUEUE_TYPE_WORKFLOW, "steward up; or steward worker --roles run"),
		queueFinding(ctx, c, workflows.QueueChecks(a.settings.Worker.Host), enumspb.TASK_QUEUE_TYPE_ACTIVITY,
			"steward up; or steward worker --roles checks"))
	for _, b := range a.settings.Browsers {
		findings = append(findings, queueFinding(ctx, c, workflows.QueueSend(b.Name), enumspb.TASK_QUEUE_TYPE_ACTIVITY,
			"steward up; or steward worker --roles browser on the host that holds the login"))
	}
	return findings
}

func queueFinding(ctx context.Context, c client.Client, queue string, kind enumspb.TaskQueueType, fix string) setup.Finding {
	name := "worker of " + queue
	alive, err := worker.Polled(ctx, c, queue, kind)
	switch {
	case err != nil:
		return bad(name, err, fix)
	case len(alive) == 0:
		return bad(name, errors.New("nobody polls this task queue"), fix)
	}
	return good(name, "%s", strings.Join(alive, ", "))
}
