// Package target stands for a chat site and its browser where a measurement is about everything else: it takes messages
// and answers them without a page. What it received is the ground truth for "sent once".
package target

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Message is one prompt that the site took.
type Message struct {
	Conversation string    `json:"conversation"`
	Effect       string    `json:"effect"`
	Generation   int       `json:"generation"`
	At           time.Time `json:"at"`
}

// Seam is what a simulated browser needs of the site, in the same process (Site) or in another one (Remote).
type Seam interface {
	// Take delivers a message; the site keeps every one, also the second of an effect.
	Take(ctx context.Context, m Message) error
	// Sent lists what a conversation received, in order.
	Sent(ctx context.Context, conversation string) ([]Message, error)
	// Answered blocks until the answers of the site are let go (see Site.Hold).
	Answered(ctx context.Context, conversation string) error
}

// Site is the simulated site. Its methods are safe for concurrent use.
type Site struct {
	mu    sync.Mutex
	chats map[string][]Message
	all   int
	held  chan struct{} // closed while answers are not held back
	wait  int           // observations that wait for an answer
}

// NewSite is a site that answers at once.
func NewSite() *Site {
	s := &Site{chats: map[string][]Message{}, held: make(chan struct{})}
	close(s.held)
	return s
}

// Take implements Seam.
func (s *Site) Take(_ context.Context, m Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.At = time.Now()
	s.chats[m.Conversation] = append(s.chats[m.Conversation], m)
	s.all++
	return nil
}

// Sent implements Seam.
func (s *Site) Sent(_ context.Context, conversation string) ([]Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.chats[conversation]), nil
}

// Total counts the messages of all conversations.
func (s *Site) Total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// Twice lists the effects that the site received more than once.
func (s *Site) Twice() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, twice := map[string]bool{}, []string{}
	for _, messages := range s.chats {
		for _, m := range messages {
			if seen[m.Effect] {
				twice = append(twice, m.Effect)
			}
			seen[m.Effect] = true
		}
	}
	return twice
}

// Hold keeps every answer back until the returned function is called.
func (s *Site) Hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make(chan struct{})
	s.held = held
	return sync.OnceFunc(func() { close(held) })
}

// Answered implements Seam.
func (s *Site) Answered(ctx context.Context, _ string) error {
	s.mu.Lock()
	held := s.held
	s.wait++
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.wait--; s.mu.Unlock() }()
	select {
	case <-held:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Waiting counts the observations that wait for an answer.
func (s *Site) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wait
}

// Serve offers the site to other processes on a free loopback port, until ctx ends. It returns the address.
func (s *Site) Serve(ctx context.Context) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /take", func(w http.ResponseWriter, r *http.Request) {
		var m Message
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&m); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = s.Take(r.Context(), m)
	})
	mux.HandleFunc("GET /sent/{conversation}", func(w http.ResponseWriter, r *http.Request) {
		messages, _ := s.Sent(r.Context(), r.PathValue("conversation"))
		_ = json.NewEncoder(w).Encode(messages)
	})
	mux.HandleFunc("GET /answered/{conversation}", func(w http.ResponseWriter, r *http.Request) {
		if s.Answered(r.Context(), r.PathValue("conversation")) != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return "http://" + listener.Addr().String(), nil
}

// Remote is a Site of another process, by its address.
type Remote string

var remote = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// Take implements Seam.
func (r Remote) Take(ctx context.Context, m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return r.call(ctx, http.MethodPost, "/take", body, nil)
}

// Sent implements Seam.
func (r Remote) Sent(ctx context.Context, conversation string) (messages []Message, err error) {
	err = r.call(ctx, http.MethodGet, "/sent/"+conversation, nil, &messages)
	return messages, err
}

// Answered implements Seam.
func (r Remote) Answered(ctx context.Context, conversation string) error {
	return r.call(ctx, http.MethodGet, "/answered/"+conversation, nil, nil)
}

func (r Remote) call(ctx context.Context, method, path string, body []byte, into any) (err error) {
	request, err := http.NewRequestWithContext(ctx, method, string(r)+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := remote.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the simulated site answers %s with %s", path, response.Status)
	}
	if into == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(into)
}
