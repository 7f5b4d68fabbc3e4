// Package chatlab is a fixture chat site: a page with the structure of a well-known chat site, a real ProseMirror composer
// and answers rendered by a real markdown library. Conversations live on the server and are scripted by scenarios, so
// that every way in which a chat site misbehaves can be shown on purpose. It records each user message that it received:
// the ground truth for "sent once".
package chatlab

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.yaml.in/yaml/v3"
)

// Options of a Server. The zero value is a site on a free port whose new chats answer with one plain line.
type Options struct {
	// Addr is a loopback address with port; default 127.0.0.1:0.
	Addr string
	// Speed divides every scripted duration: 2 is twice as fast. Default 1.
	Speed float64
	// Dir is the folder in which write_file and run work; without it scenarios with these steps are refused.
	Dir string
	// Vars are values for the templates: {{.Vars.name}}.
	Vars map[string]string
	// New scripts the conversations that a first message at / creates.
	New Scenario
	// HTTPCommands accepts run and write_file also in scenarios that come over HTTP: whoever reaches the port may then
	// run programs.
	HTTPCommands bool
	// UI is another interface in place of the site's own page: a template index.html with the fields .Boot, .Title and
	// .Language, and the files that it loads from /assets/. Package chatpages has some.
	UI fs.FS
	// Log takes what the site does; default: nowhere.
	Log *slog.Logger
}

// Conversation is a conversation to create. Empty fields are taken from the scenario's own conversation.
type Conversation struct {
	ID       string    `json:"id"`      // uuid; default: a new one
	Project  string    `json:"project"` // g-p-<hex>-<slug>
	Title    string    `json:"title"`
	History  []Message `json:"history"`
	Scenario Scenario  `json:"-"`
}

// Received is one user message that the site took.
type Received struct {
	At             time.Time `json:"at"`
	ConversationID string    `json:"conversation_id"`
	MessageID      string    `json:"message_id"`
	Text           string    `json:"text"`      // as the page sent it
	Shown          string    `json:"shown"`     // as the conversation shows it: may be cut
	Via            string    `json:"via"`       // click, enter, keyboard (button focused), form, script (untrusted event), say (Server.Say)
	EffectID       string    `json:"effect_id"` // of its marker
	SignedOut      bool      `json:"signed_out,omitempty"`
}

// Event is something that happened at a page or to a message beside what Received tells.
type Event struct {
	At             time.Time `json:"at"`
	ConversationID string    `json:"conversation_id"`
	Kind           string    `json:"kind"`
	Detail         string    `json:"detail,omitempty"`
}

// Server is a running site. Its methods are safe for concurrent use.
type Server struct {
	opts   Options
	pages  *template.Template
	url    string
	http   *http.Server
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu         sync.Mutex
	chats      map[string]*chat // by id
	fresh      map[string]*chat // pages for a new chat, by project
	order      []*chat
	requests   map[string]string // provisional request id → conversation id
	site       activeState       // state of every page that has none of its own
	all        []Received
	events     []Event
	violations []string
	hooks      []func(Received)
	changed    chan struct{} // closed and replaced at every received message
}

// plainAnswer answers in a new chat when Options.New has no replies.
const plainAnswer = `otherwise: [{text: "You said {{len .Text}} characters."}]`

// Start serves a site until Close.
func Start(opts Options) (*Server, error) {
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	if opts.Speed == 0 {
		opts.Speed = 1
	}
	if opts.Speed < 0 {
		return nil, fmt.Errorf("chatlab: speed is %g, want more than 0", opts.Speed)
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Dir != "" {
		dir, err := filepath.Abs(opts.Dir)
		if err != nil {
			return nil, fmt.Errorf("chatlab: %w", err)
		}
		opts.Dir = dir
	}
	if len(opts.New.Replies) == 0 && len(opts.New.Otherwise) == 0 {
		opts.New.Otherwise = MustParse(plainAnswer).Otherwise
	}
	if host, _, err := net.SplitHostPort(opts.Addr); err != nil || !loopback(host) {
		return nil, fmt.Errorf("chatlab: address %q: want a loopback address with port, such as 127.0.0.1:0", opts.Addr)
	}
	s := &Server{
		opts: opts, chats: map[string]*chat{}, fresh: map[string]*chat{}, requests: map[string]string{},
		changed: make(chan struct{}),
	}
	var err error
	if s.opts.New, err = s.admit(opts.New); err != nil {
		return nil, err
	}
	pages, files, err := loadPages(opts.UI)
	if err != nil {
		return nil, fmt.Errorf("chatlab: pages: %w", err)
	}
	s.pages = pages
	listener, err := net.Listen("tcp", opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("chatlab: %w", err)
	}
	s.url = "http://" + listener.Addr().String()
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:           s.routes(files),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
	}
	s.work.Go(func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			opts.Log.Error("chatlab stopped serving", "error", err)
		}
	})
	return s, nil
}

// Close ends the site, its pages' connections and its scripts.
func (s *Server) Close() error {
	s.cancel()
	err := s.http.Close()
	s.work.Wait()
	return err
}

// URL is the address of the site, without a slash at the end.
func (s *Server) URL() string { return s.url }

// ConversationURL is the address of a conversation.
func (s *Server) ConversationURL(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[id]; c != nil {
		return s.url + c.path()
	}
	return s.url + "/c/" + id
}

var (
	conversationID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	projectName    = regexp.MustCompile(`^g-p-[0-9a-f]{8,}(-[a-z0-9-]+)?$`)
)

// NewConversation creates a conversation and returns its id.
func (s *Server) NewConversation(conv Conversation) (string, error) {
	seed := conv.Scenario.Seed
	id, project := cmp.Or(conv.ID, seed.ID, newID()), cmp.Or(conv.Project, seed.Project)
	if conv.History != nil {
		seed.History = conv.History
	}
	if !conversationID.MatchString(id) {
		return "", fmt.Errorf("chatlab: conversation id %q: want a lower case uuid", id)
	}
	if project != "" && !projectName.MatchString(project) {
		return "", fmt.Errorf("chatlab: project %q: want g-p-<hex>-<slug>", project)
	}
	sc, err := s.admit(conv.Scenario)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chats[id] != nil {
		return "", fmt.Errorf("chatlab: conversation %s exists", id)
	}
	c := newChat(id, project)
	c.title = cmp.Or(conv.Title, seed.Title, "Chat "+id[:8])
	c.turns = historyTurns(seed)
	c.setScenario(sc, s.scaled(sc.Page.State.For))
	s.register(c)
	return id, nil
}

// newID is the id of a conversation: a uuid of version 8 that begins with the present second, as on the real site.
func newID() string {
	id := uuid.New()
	binary.BigEndian.PutUint32(id[:], uint32(time.Now().Unix()))
	id[6] = 0x80 | id[6]&0x0f
	return id.String()
}

func (s *Server) register(c *chat) {
	s.chats[c.id] = c
	s.order = append(s.order, c)
}

// admit fills in a scenario's defaults, and refuses one that this site cannot play.
func (s *Server) admit(sc Scenario) (Scenario, error) {
	if s.opts.Dir == "" && sc.commands() {
		return sc, errors.New("chatlab: the scenario uses run or write_file, which need a folder (Options.Dir)")
	}
	if err := sc.Page.complete(&yaml.Node{}); err != nil {
		return sc, fmt.Errorf("chatlab: %w", err)
	}
	return sc, nil
}

// SetScenario replaces the script of a conversation; its replies count from now on.
func (s *Server) SetScenario(id string, sc Scenario) error {
	sc, err := s.admit(sc)
	if err != nil {
		return err
	}
	return s.with(id, func(c *chat) {
		c.setScenario(sc, s.scaled(sc.Page.State.For))
		c.sendClick(s)
		s.sendState(c)
	})
}

// SetNew scripts the conversations that a first message creates on a project's page, or at / for the empty project.
func (s *Server) SetNew(project string, sc Scenario) error {
	sc, err := s.admit(sc)
	if err != nil {
		return err
	}
	if project != "" && !projectName.MatchString(project) {
		return fmt.Errorf("chatlab: project %q: want g-p-<hex>-<slug>", project)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freshChat(project).setScenario(sc, s.scaled(sc.Page.State.For))
	return nil
}

// freshChat is the page for a new chat of a project. The caller holds s.mu.
func (s *Server) freshChat(project string) *chat {
	key := projectKey(project)
	c := s.fresh[key]
	if c == nil {
		c = newChat("", project)
		c.setScenario(s.opts.New, s.scaled(s.opts.New.Page.State.For))
		s.fresh[key] = c
	}
	return c
}

// with runs f on a conversation while s.mu is held.
func (s *Server) with(id string, f func(*chat)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[id]
	if c == nil {
		return fmt.Errorf("chatlab: %w %s", errNoConversation, id)
	}
	f(c)
	return nil
}

var errNoConversation = errors.New("no conversation")

func (s *Server) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / s.opts.Speed)
}

func loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
