package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"steward/integration/chatlab"
	"steward/integration/chatpages"
)

// labFlags are the flags of the fixture chat site.
type labFlags struct {
	scenario, address, folder, ui string
	speed                         float64
	list                          bool
}

func newChatlabCommand(app *app) *cobra.Command {
	var f labFlags
	cmd := &cobra.Command{
		Use: "chatlab", Short: "Serve the fixture chat site with one scripted conversation, until it is told to stop", Args: cobra.NoArgs,
		Long: "Serve the fixture chat site until it is told to stop. The scenario scripts one conversation, and every conversation that a\n" +
			"first message creates: at the start page, and at /g/g-p-<16 hex digits>-<name>/project.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.list {
				return listScenarios(app)
			}
			return serveChatlab(cmd, app, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.scenario, "scenario", "demo", "name of a shipped scenario, or the path of a file")
	flags.BoolVar(&f.list, "list", false, "list the shipped scenarios instead")
	flags.StringVar(&f.ui, "ui", "", "another chat interface before it: "+strings.Join(chatpages.Names(), ", "))
	flags.StringVar(&f.address, "listen", "127.0.0.1:0", "loopback address")
	flags.StringVar(&f.folder, "folder", os.TempDir(), "where the steps write_file and run work")
	flags.Float64Var(&f.speed, "speed", 1, "divides every scripted duration")
	return cmd
}

// served tells where the fixture chat site is, and how Steward can work in it.
type served struct {
	URL             string `json:"url"`
	ConversationURL string `json:"conversation_url"`
	About           string `json:"about"`
	// Profile is a site profile for this page.
	Profile string `json:"profile"`
}

func serveChatlab(cmd *cobra.Command, app *app, f labFlags) error {
	script, err := chatlab.LoadScenario(f.scenario)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	pages, err := chatpages.UI(f.ui)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	site, err := chatlab.Start(chatlab.Options{Addr: f.address, Speed: f.speed, Dir: f.folder, New: script, UI: pages, Log: app.log})
	if err != nil {
		return err
	}
	defer site.Close()
	id, err := site.NewConversation(chatlab.Conversation{Scenario: script})
	if err != nil {
		return err
	}
	answer := served{URL: site.URL(), ConversationURL: site.ConversationURL(id), About: script.About}
	answer.Profile = fmt.Sprintf("site: lab\nextends: %s\nheaded: false\norigins: [%q]\n", cmp.Or(f.ui, "chatgpt"), site.URL())
	err = app.answer(answer, func(w io.Writer) {
		fmt.Fprintf(w, "%s\n%s\n\nFor a run in it (site: lab), save this as %s:\n\n%s",
			answer.About, answer.ConversationURL, filepath.Join(app.settings.SitesDir, "lab.yaml"), answer.Profile)
	})
	if err != nil {
		return err
	}
	<-cmd.Context().Done()
	return nil
}

// scenarioRow is a shipped scenario in short.
type scenarioRow struct {
	Name  string `json:"scenario"`
	About string `json:"about"`
}

func listScenarios(app *app) error {
	rows := []scenarioRow{}
	for _, name := range chatlab.ScenarioNames() {
		script, err := chatlab.LoadScenario(name)
		if err != nil {
			return err
		}
		rows = append(rows, scenarioRow{name, script.About})
	}
	return app.answer(rows, func(w io.Writer) {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, r := range rows {
			fmt.Fprintf(table, "%s\t%s\n", r.Name, r.About)
		}
		_ = table.Flush()
	})
}
