package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"
	"golang.org/x/term"
)

// output is where and how a command answers. Answers go to out, everything else (progress, hints, logs) to err.
type output struct {
	out, err io.Writer
	json     bool
	// colour and live are for terminals only: colours, and lines that are written over.
	colour, live bool
}

func newOutput(out, err io.Writer, format string) (output, error) {
	o := output{out: out, err: err, json: format == "json"}
	if format != "text" && format != "json" {
		return o, exitWith(exitUsage, "--output is %q; it must be text or json", format)
	}
	file, isFile := out.(*os.File)
	o.live = !o.json && isFile && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
	o.colour = o.live && os.Getenv("NO_COLOR") == ""
	return o, nil
}

// answer writes v as one line of JSON, or what text writes.
func (o output) answer(v any, text func(io.Writer)) error {
	if !o.json {
		text(o.out)
		return nil
	}
	encoder := json.NewEncoder(o.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// width is that of the terminal, in characters.
func (o output) width() int {
	if file, ok := o.out.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 20 {
			return width
		}
	}
	return 80
}

func (o output) line(format string, args ...any) { fmt.Fprintf(o.out, format+"\n", args...) }

// note is for the person at the terminal: never part of an answer.
func (o output) note(format string, args ...any) { fmt.Fprintf(o.err, format+"\n", args...) }

// Colours of a terminal.
const (
	green  = "32"
	yellow = "33"
	red    = "31"
	dim    = "2"
	bold   = "1"
)

func (o output) paint(colour, text string) string {
	if !o.colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// writeYAML is for people; machines read JSON.
func writeYAML(w io.Writer, v any) {
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(v); err != nil {
		fmt.Fprintln(w, err)
	}
}
