package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"steward/config/sites"
)

func newSitesCommand(app *app) *cobra.Command {
	cmd := group("sites", "Look at the site profiles")
	cmd.AddCommand(newSitesListCommand(app), newSitesShowCommand(app), newSitesCheckCommand(app))
	return cmd
}

// siteRow is a site profile in short.
type siteRow struct {
	Name    string   `json:"site"`
	Version int      `json:"version"`
	Facts   string   `json:"facts"`
	Digest  string   `json:"digest"`
	Origins []string `json:"origins"`
}

func newSitesListCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the site profiles, built-in and your own", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			rows, err := siteRows(app)
			if err != nil {
				return err
			}
			return app.answer(rows, func(w io.Writer) {
				table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
				fmt.Fprintln(table, "SITE\tVERSION\tFACTS\tORIGINS\tDIGEST")
				for _, r := range rows {
					fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%.12s\n", r.Name, r.Version, r.Facts, strings.Join(r.Origins, " "), r.Digest)
				}
				_ = table.Flush()
			})
		},
	}
}

func siteRows(app *app) ([]siteRow, error) {
	registry, err := app.sites()
	if err != nil {
		return nil, err
	}
	rows := []siteRow{}
	for _, name := range registry.Names() {
		site, err := registry.Site(name)
		if err != nil {
			return nil, err
		}
		rows = append(rows, siteRow{site.Name, site.Version, site.Facts, site.Digest(), site.Origins})
	}
	return rows, nil
}

func newSitesShowCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "show SITE", Short: "Print a whole profile, with what it extends", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			registry, err := app.sites()
			if err != nil {
				return err
			}
			site, err := registry.Site(args[0])
			if err != nil {
				return exitWith(exitNotFound, "%w", err)
			}
			return app.answer(site, func(w io.Writer) { writeYAML(w, site) })
		},
	}
}

func newSitesCheckCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "check [FILE | FOLDER]", Args: cobra.MaximumNArgs(1),
		Short: "Check a profile file and tell what it would override, or a folder; default the folder of the settings",
		RunE: func(_ *cobra.Command, args []string) error {
			target := app.settings.SitesDir
			if len(args) == 1 {
				target = args[0]
				if info, err := os.Stat(target); err != nil {
					return &exitError{exitUsage, err}
				} else if !info.IsDir() {
					return checkSiteFile(app, target)
				}
			}
			registry, err := sites.Load(target)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			return app.answer(map[string]any{"folder": target, "sites": registry.Names()}, func(w io.Writer) {
				fmt.Fprintf(w, "%s: every profile is good (%s)\n", target, strings.Join(registry.Names(), ", "))
			})
		},
	}
}

func checkSiteFile(app *app, file string) error {
	checked, err := sites.CheckFile(file, app.settings.SitesDir)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	return app.answer(checked, func(w io.Writer) {
		fmt.Fprintf(w, "%s: site %s is good, digest %.12s\n", checked.File, checked.Name, checked.Digest)
		switch {
		case checked.Replaces != "":
			fmt.Fprintf(w, "in %s it replaces %s\n", app.settings.SitesDir, checked.Replaces)
		case checked.Extends != "":
			fmt.Fprintf(w, "in %s it adds a site that extends %s\n", app.settings.SitesDir, checked.Extends)
		default:
			fmt.Fprintf(w, "in %s it adds a site\n", app.settings.SitesDir)
		}
		for _, key := range checked.Overrides {
			fmt.Fprintf(w, "  overrides %s\n", key)
		}
		if len(checked.Affects) > 0 {
			fmt.Fprintf(w, "these extend it: %s\n", strings.Join(checked.Affects, ", "))
		}
	})
}
