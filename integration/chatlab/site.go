package chatlab

import (
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/websocket"
)

//go:embed web/dist web/index.html web/challenge.html
var assets embed.FS

// loadPages parses the pages, and finds what they load from /assets/.
func loadPages(ui fs.FS) (*template.Template, fs.FS, error) {
	pages, err := template.ParseFS(assets, "web/index.html", "web/challenge.html")
	if err != nil || ui == nil {
		return pages, dist(), err
	}
	pages, err = pages.ParseFS(ui, "index.html")
	return pages, ui, err
}

func dist() fs.FS {
	sub, err := fs.Sub(assets, "web/dist")
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	return sub
}

const maxBody = 16 << 20

// routes are the addresses of the site. Everything below /backend-api/ is for its own page, below /lab/ for tests.
func (s *Server) routes(files fs.FS) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", http.FileServerFS(files)))
	mux.HandleFunc("GET /{$}", s.servePage)
	mux.HandleFunc("GET /c/{id}", s.servePage)
	mux.HandleFunc("GET /g/{project}/project", s.servePage)
	mux.HandleFunc("GET /g/{project}/c/{id}", s.servePage)
	mux.HandleFunc("POST /backend-api/conversation", s.postMessage)
	mux.HandleFunc("POST /backend-api/ui", s.postUI)
	mux.HandleFunc("GET /backend-api/poll", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.Handle("GET /backend-api/events", websocket.Server{Handler: s.serveEvents})
	s.labRoutes(mux)
	return guard(mux)
}

// guard refuses requests that another site's page makes through a person's browser: a foreign Host (DNS rebinding) or a
// foreign Origin.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		origin := r.Header.Get("Origin")
		if err != nil || !loopback(host) || (origin != "" && origin != "http://"+r.Host) {
			http.Error(w, "chatlab serves its own loopback address only", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// boot is what the page knows before its event connection stands.
type boot struct {
	ConversationID string    `json:"conversation_id"`
	Project        string    `json:"project"`
	NotFound       bool      `json:"not_found"`
	Title          string    `json:"title"`
	State          stateView `json:"state"`
	Page           Page      `json:"page"`
	HydrateMS      int64     `json:"hydrate_ms"`
	SendMS         int64     `json:"send_ms"`
	Sidebar        []link    `json:"sidebar"`
	Listed         []link    `json:"listed"` // conversations of a project page
}

type link struct {
	Href  string `json:"href"`
	Title string `json:"title"`
}

// find is the conversation of an address, durable or provisional; nil if there is none. The caller holds s.mu.
func (s *Server) find(project, id string) *chat {
	if id == "" {
		return s.freshChat(project)
	}
	if request, ok := strings.CutPrefix(id, "WEB:"); ok {
		id = s.requests[request]
	}
	c := s.chats[strings.ToLower(id)]
	if c != nil && project != "" && projectKey(project) != projectKey(c.project) {
		return nil
	}
	return c
}

// servePage serves one page load.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	project, id := r.PathValue("project"), r.PathValue("id")
	if project != "" && !projectName.MatchString(project) {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.find(project, id)
	b := boot{Project: project, NotFound: c == nil}
	ghost := []*turn(nil)
	if c == nil {
		c = newChat("", "")
		c.setScenario(s.opts.New, 0)
		b.State = s.site.view()
	} else {
		active := s.stateOf(c)
		active.load()
		b.State = active.view()
		ghost = c.turns[:min(2, len(c.turns))]
	}
	if b.State.Kind == "login" {
		ghost = nil
	}
	if limited := s.chats[r.URL.Query().Get("limited")]; limited != nil && id == "" {
		b.State = limited.state.view()
		b.State.Kind = "rate_limit"
	}
	w.Header().Set("Cache-Control", "no-store")
	// Nothing is loaded from elsewhere, whatever a page's libraries would like.
	w.Header().Set("Content-Security-Policy", "default-src 'self' 'unsafe-inline' data: blob:")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	switch b.State.Kind {
	case "challenge":
		w.WriteHeader(http.StatusForbidden)
		s.render(w, "challenge.html", map[string]any{"Language": c.scenario.Page.Language})
		return
	case "rate_limit_on_load":
		http.Redirect(w, r, "/?limited="+c.id, http.StatusFound)
		return
	}
	s.fill(&b, c)
	s.render(w, "index.html", map[string]any{"Boot": b, "Title": b.Title, "Language": b.Page.Language, "Ghost": ghost})
}

func (s *Server) fill(b *boot, c *chat) {
	b.ConversationID, b.Title = c.id, c.title
	if !b.NotFound && b.Project == "" {
		b.Project = c.project
	}
	b.Page = c.scenario.Page
	b.HydrateMS, b.SendMS = s.scaled(b.Page.HydrateAfter).Milliseconds(), s.scaled(b.Page.SendAfter).Milliseconds()
	for _, v := range slices.Backward(s.order) {
		other := v
		entry := link{other.path(), other.title}
		if len(b.Sidebar) < 30 {
			b.Sidebar = append(b.Sidebar, entry)
		}
		if c.id == "" && c.project != "" && projectKey(other.project) == projectKey(c.project) {
			b.Listed = append(b.Listed, entry)
		}
	}
}

func (s *Server) render(w io.Writer, name string, data any) {
	if err := s.pages.ExecuteTemplate(w, name, data); err != nil {
		s.opts.Log.Error("page", "name", name, "error", err)
	}
}

// serveEvents tells one page the whole conversation, then every change.
func (s *Server) serveEvents(conn *websocket.Conn) {
	defer conn.Close()
	query := conn.Request().URL.Query()
	w := &watcher{events: make(chan []byte, 1024), muted: map[string]bool{}}
	s.mu.Lock()
	c := s.find(query.Get("project"), query.Get("conversation"))
	if c == nil {
		s.mu.Unlock()
		return
	}
	snapshot, err := json.Marshal(map[string]any{
		"type": "snapshot", "turns": append([]*turn{}, c.turns...), "click": c.click(s), "path": c.path(),
	})
	c.watchers[w] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.drop(w)
	}()
	if err != nil {
		s.opts.Log.Error("snapshot", "error", err)
		return
	}
	gone := make(chan struct{})
	s.work.Go(func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, conn) // ends when the page leaves or the connection is closed
	})
	for data, ok := snapshot, true; ok; {
		if websocket.Message.Send(conn, string(data)) != nil {
			return
		}
		select {
		case data, ok = <-w.events:
		case <-gone:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Server) postMessage(w http.ResponseWriter, r *http.Request) {
	var m posted
	if !readJSON(w, r, &m) {
		return
	}
	v := s.take(m)
	if v.Cut {
		// Without this first byte the browser would post again by itself.
		_, _ = io.WriteString(w, "{")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // net/http closes the connection
	}
	if v.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "60")
	}
	writeJSON(w, v.Status, v)
}

// readJSON reads the body of a request of the page. It answers the request itself when that fails.
func readJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	err := decodeJSON(http.MaxBytesReader(w, r.Body, maxBody), into)
	if err != nil {
		writeError(w, err, http.StatusBadRequest)
	}
	return err == nil
}

func decodeJSON(from io.Reader, into any) error {
	decoder := json.NewDecoder(from)
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client has left
}

func writeError(w http.ResponseWriter, err error, status int) {
	if errors.Is(err, errNoConversation) {
		status = http.StatusNotFound
	}
	writeJSON(w, status, map[string]string{"error": err.Error()})
}
