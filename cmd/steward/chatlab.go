package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"steward/integration/chatlab"
	"steward/integration/chatpages"
)

func newChatlabCommand(app *app) *cobra.Command {
	var scenario, address, folder, ui string
	var speed float64
	cmd := &cobra.Command{
		Use: "chatlab", Short: "Serve the fixture chat site with one scripted conversation, until it is told to stop", Args: cobra.NoArgs,
		Long: "Serve the fixture chat site until it is told to stop. The scenario scripts one conversation, and every conversation that a\n" +
			"first message creates: at the start page, and at /g/g-p-<16 hex digits>-<name>/project.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			script, err := chatlab.LoadScenario(scenario)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			pages, err := chatpages.UI(ui)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			site, err := chatlab.Start(chatlab.Options{Addr: address, Speed: speed, Dir: folder, New: script, UI: pages, Log: app.log})
			if err != nil {
				return err
			}
			defer site.Close()
			id, err := site.NewConversation(chatlab.Conversation{Scenario: script})
			if err != nil {
				return err
			}
			answer := map[string]string{"url": site.URL(), "conversation_url": site.ConversationURL(id), "about": script.About}
			err = app.answer(answer, func(w io.Writer) {
				fmt.Fprintf(w, "%s\n%s\n", script.About, site.ConversationURL(id))
			})
			if err != nil {
				return err
			}
			<-cmd.Context().Done()
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&scenario, "scenario", "demo", "name of a shipped scenario, or the path of a file")
	flags.StringVar(&ui, "ui", "", "another chat interface before it: "+strings.Join(chatpages.Names(), ", "))
	flags.StringVar(&address, "listen", "127.0.0.1:0", "loopback address")
	flags.StringVar(&folder, "folder", os.TempDir(), "where the steps write_file and run work")
	flags.Float64Var(&speed, "speed", 1, "divides every scripted duration")
	return cmd
}
