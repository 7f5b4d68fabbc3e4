package chatlab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// labRoutes is the control API: what Server's methods do, for other processes. Bodies are JSON; a scenario may also be YAML.
func (s *Server) labRoutes(mux *http.ServeMux) {
	get := func(path string, f func(*http.Request) (any, error)) { mux.HandleFunc("GET /lab/"+path, s.lab(f)) }
	post := func(path string, f func(*http.Request) (any, error)) { mux.HandleFunc("POST /lab/"+path, s.lab(f)) }

	post("conversations", s.labCreate)
	get("conversations", func(*http.Request) (any, error) { return s.Conversations(), nil })
	get("conversations/{id}", func(r *http.Request) (any, error) { return s.Transcript(r.PathValue("id")) })
	get("conversations/{id}/records", s.labAwait)
	post("conversations/{id}/scenario", s.labScenario)
	post("conversations/{id}/state", s.labState)
	post("conversations/{id}/draft", onText(s.Draft))
	post("conversations/{id}/say", onText(s.Say))
	post("conversations/{id}/edit", onText(s.Edit))
	post("conversations/{id}/regenerate", s.labRegenerate)
	post("conversations/{id}/gates/{gate}", func(r *http.Request) (any, error) {
		return nil, s.Release(r.PathValue("id"), r.PathValue("gate"))
	})
	get("conversations/{id}/gates/{gate}", func(r *http.Request) (any, error) {
		ctx, cancel, err := patience(r)
		defer cancel()
		if err != nil {
			return nil, err
		}
		return nil, s.AwaitGate(ctx, r.PathValue("id"), r.PathValue("gate"))
	})
	post("new", s.labScenario)
	post("new/{project}", s.labScenario)
	post("state", s.labState)
	get("records", s.labAwait)
	get("events", func(*http.Request) (any, error) { return s.Events(), nil })
	get("violations", func(*http.Request) (any, error) { return s.Violations(), nil })
}

// lab answers with what f returns; an error is {"error": …} with 400, 404 for an unknown conversation, or 504 when a wait
// was in vain.
func (s *Server) lab(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		value, err := f(r)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			writeError(w, err, http.StatusGatewayTimeout)
		case err != nil:
			writeError(w, err, http.StatusBadRequest)
		case value == nil:
			writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
		default:
			writeJSON(w, http.StatusOK, value)
		}
	}
}

// readYAML reads a body that is YAML or JSON.
func readYAML(r *http.Request, into any) error {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	return yaml.Unmarshal(data, into)
}

// allow refuses commands from outside unless the owner of the site allows them.
func (s *Server) allow(sc Scenario) error {
	if sc.commands() && !s.opts.HTTPCommands {
		return errors.New("chatlab: run and write_file are not accepted over HTTP (Options.HTTPCommands)")
	}
	return nil
}

// creation is the body of POST /lab/conversations.
type creation struct {
	ID       string    `yaml:"id"`
	Project  string    `yaml:"project"`
	Title    string    `yaml:"title"`
	History  []Message `yaml:"history"`
	Scenario yaml.Node `yaml:"scenario"` // a mapping, or a string that holds YAML
}

func (c *creation) UnmarshalYAML(n *yaml.Node) error {
	type plain creation
	return strict(n, (*plain)(c))
}

func (s *Server) labCreate(r *http.Request) (any, error) {
	var body creation
	if err := readYAML(r, &body); err != nil {
		return nil, err
	}
	conv := Conversation{ID: body.ID, Project: body.Project, Title: body.Title, History: body.History}
	var err error
	switch body.Scenario.Kind {
	case 0:
	case yaml.ScalarNode:
		conv.Scenario, err = ParseScenario([]byte(body.Scenario.Value))
	default:
		err = body.Scenario.Decode(&conv.Scenario)
	}
	if err = errors.Join(err, s.allow(conv.Scenario)); err != nil {
		return nil, err
	}
	id, err := s.NewConversation(conv)
	if err != nil {
		return nil, err
	}
	return map[string]string{"id": id, "url": s.ConversationURL(id)}, nil
}

// labScenario sets the script of a conversation, or of the new chats of a project.
func (s *Server) labScenario(r *http.Request) (any, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	sc, err := ParseScenario(data)
	if err = errors.Join(err, s.allow(sc)); err != nil {
		return nil, err
	}
	if id := r.PathValue("id"); id != "" {
		return nil, s.SetScenario(id, sc)
	}
	return nil, s.SetNew(r.PathValue("project"), sc)
}

func (s *Server) labState(r *http.Request) (any, error) {
	var st State
	if err := readYAML(r, &st); err != nil {
		return nil, err
	}
	return nil, s.SetState(r.PathValue("id"), st)
}

func (s *Server) labRegenerate(r *http.Request) (any, error) {
	var steps Steps
	if err := readYAML(r, &steps); err != nil {
		return nil, err
	}
	if err := s.allow(Scenario{Otherwise: steps}); err != nil {
		return nil, err
	}
	return nil, s.Regenerate(r.PathValue("id"), steps)
}

// labAwait lists received messages: ?min=n&wait=10s waits for that many.
func (s *Server) labAwait(r *http.Request) (any, error) {
	id, wanted := r.PathValue("id"), r.URL.Query().Get("min")
	if id != "" {
		if err := s.with(id, func(*chat) {}); err != nil {
			return nil, err
		}
	}
	least, err := strconv.Atoi("0" + wanted)
	if err != nil {
		return nil, fmt.Errorf("min=%q: want a number", wanted)
	}
	ctx, cancel, err := patience(r)
	defer cancel()
	if err != nil {
		return nil, err
	}
	got, err := s.Await(ctx, id, least)
	return append([]Received{}, got...), err
}

// patience is how long a request waits: ?wait=10s, default 0.
func patience(r *http.Request) (context.Context, context.CancelFunc, error) {
	wait, err := time.ParseDuration(r.URL.Query().Get("wait"))
	if r.URL.Query().Get("wait") == "" {
		wait, err = 0, nil
	}
	if err != nil {
		return nil, func() {}, fmt.Errorf("wait: %w", err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	return ctx, cancel, nil
}

// onText is a handler for {"text": …}.
func onText(f func(id, text string) error) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var body struct {
			Text string `json:"text"`
		}
		if err := decodeJSON(r.Body, &body); err != nil {
			return nil, err
		}
		return nil, f(r.PathValue("id"), body.Text)
	}
}
