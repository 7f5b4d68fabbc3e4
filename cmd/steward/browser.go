package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"steward/activities"
	"steward/activities/browser"
	"steward/config"
)

func newBrowserCommand(app *app) *cobra.Command {
	cmd := group("browser", "Log browsers in, and ask whether they could send")
	cmd.AddCommand(newBrowserLoginCommand(app), newBrowserProbeCommand(app))
	return cmd
}

// browser is the login of a name in the settings.
func (a *app) browser(name string) (config.Browser, error) {
	for _, b := range a.settings.Browsers {
		if b.Name == name {
			return b, nil
		}
	}
	return config.Browser{}, exitWith(exitNotFound, "there is no browser %q in the settings (browsers[].name)", name)
}

func newBrowserLoginCommand(app *app) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: "login", Short: "Open a plain browser on the profile directory of a login, and wait until you close it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			login, err := app.browser(name)
			if err != nil {
				return err
			}
			return app.login(cmd.Context(), login)
		},
	}
	cmd.Flags().StringVar(&name, "browser", "chatgpt", "name of the login")
	return cmd
}

// login starts the browser as a person would: no automation. Meanwhile it holds the profile directory, so that no worker
// drives it.
func (a *app) login(ctx context.Context, login config.Browser) error {
	if login.Mode == config.CDP {
		return exitWith(exitUsage, "browser %s is one that you run yourself (mode cdp): log in there", login.Name)
	}
	registry, err := a.sites()
	if err != nil {
		return err
	}
	options, err := a.browserOptions(login, registry)
	if err != nil {
		return err
	}
	held, err := browser.Open(ctx, options)
	if err != nil {
		return err
	}
	defer closeBrowser(held)
	site, err := registry.Site(login.Site)
	if err != nil {
		return err
	}
	plain, err := browser.LoginCommand(options.Executable, login.ProfileDir, site.StartURL())
	if err != nil {
		return err
	}
	a.note("log in to %s in the window that opens, then close it", site.StartURL())
	if err := plain.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = plain.Process.Signal(os.Interrupt) })()
	if err := plain.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the browser ended with an error: %w", err)
	}
	return ctx.Err()
}

func closeBrowser(b *browser.Browser) {
	ctx, cancel := context.WithTimeout(context.Background(), config.BrowserCloseTime)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "closing the browser:", err)
	}
}

func newBrowserProbeCommand(app *app) *cobra.Command {
	var only string
	cmd := &cobra.Command{
		Use: "probe", Short: "Ask each browser whether it would send now; sends nothing", Args: cobra.NoArgs,
		Long: "Ask each browser of the settings whether it would send now, in one line each. A page that is no longer recognised is\n" +
			"named with the rules of the site profile that match nothing, and kept as a picture on this host. A browser that a worker\n" +
			"drives is busy: its runs tell by themselves what stands in the way.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			results := map[string]activities.ProbeResult{}
			var asked, failed []string
			for _, login := range app.settings.Browsers {
				if only != "" && login.Name != only {
					continue
				}
				result, err := app.probe(cmd.Context(), login)
				if err != nil {
					result = activities.ProbeResult{Class: "cannot_probe", Detail: err.Error()}
				}
				asked = append(asked, login.Name)
				if results[login.Name] = result; !result.Passed {
					failed = append(failed, login.Name)
				}
			}
			if only != "" && len(asked) == 0 {
				_, err := app.browser(only)
				return err
			}
			err := app.answer(results, func(w io.Writer) {
				for _, name := range asked {
					fmt.Fprintf(w, "%s: %s\n", name, app.probeLine(name, results[name]))
				}
			})
			if err == nil && len(failed) > 0 {
				err = exitWith(exitFailed, "these browsers would not send now: %v", failed)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&only, "browser", "", "only this login")
	return cmd
}

const probeTime = 2 * time.Minute

func (a *app) probe(ctx context.Context, login config.Browser) (activities.ProbeResult, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	registry, err := a.sites()
	if err != nil {
		return activities.ProbeResult{}, err
	}
	options, err := a.browserOptions(login, registry)
	if err != nil {
		return activities.ProbeResult{}, err
	}
	options.Screenshots = true // of an unrecognised page, for whoever asks
	b, err := browser.Open(ctx, options)
	if err != nil {
		return activities.ProbeResult{}, err
	}
	defer closeBrowser(b)
	return b.Probe(ctx, activities.ProbeInput{
		ID: "cli", Level: activities.ProbePage, Conversation: activities.Conversation{Site: login.Site, Browser: login.Name},
	})
}

func (a *app) probeLine(name string, r activities.ProbeResult) string {
	if r.Passed {
		return a.paint(green, "would send now")
	}
	line := a.paint(red, "would not send now") + ": " + r.Class + ": " + r.Detail
	switch r.Class {
	case activities.UserLogin, activities.UserConsent, activities.UserChallenge:
		line += "; `steward browser login --browser " + name + "`"
	case activities.DeferForeignDraft:
		line += "; send or clear it in that browser"
	case activities.DeferBrowserMissing:
		line += "; `steward doctor` says how to start it"
	case "drift":
		line += "; the site has changed: take a newer profile, or correct these rules in " + a.settings.SitesDir + " (no restart is needed)"
	}
	return line
}
