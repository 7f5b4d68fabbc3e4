// Command service is a small HTTP service with a SQLite database, for the tests of recovery: it writes rows, tells who it is
// and honours the admission fence and the writer epoch of its home.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	_ "modernc.org/sqlite"

	"steward/activities/recovery/home"
)

// settings is service.json, beside the program: what makes one build another release.
type settings struct {
	Name string `json:"name"`
	// Broken: exit (at once), unready (never ready), late_exit (after it is ready), unverified (ready, and /verify fails).
	Broken string `json:"broken"`
	// OnlyLive: it is broken only on the port of the live lane.
	OnlyLive int `json:"only_live"`
	// WriteAtStart: a row is written before it is ready.
	WriteAtStart bool `json:"write_at_start"`
}

type service struct {
	settings
	home.Claimed
	db *sql.DB
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) == 3 && os.Args[1] == "exit" {
		code, err := strconv.Atoi(os.Args[2])
		fmt.Println("exit", code)
		os.Exit(code)
		return err
	}
	port, database, settingsFile := os.Args[1], os.Args[2], os.Args[3]
	claimed, err := home.FromEnvironment()
	if err != nil || claimed == nil {
		return errors.Join(errors.New("recovery did not start it"), err)
	}
	s := service{Claimed: *claimed}
	data, err := os.ReadFile(settingsFile)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &s.settings); err != nil {
		return err
	}
	if s.OnlyLive != 0 && strconv.Itoa(s.OnlyLive) != port {
		s.Broken = ""
	}
	if s.Broken == "exit" {
		return errors.New("broken on purpose")
	}
	s.db, err = sql.Open("sqlite", "file:"+database+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	defer s.db.Close()
	if _, err := s.db.Exec("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, release TEXT, epoch INTEGER)"); err != nil {
		return err
	}
	if s.WriteAtStart {
		if err := s.insert(); err != nil { // its own, not new work
			return err
		}
	}
	return s.serve(port)
}

func (s service) serve(port string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if s.Broken == "unready" {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /verify", func(w http.ResponseWriter, _ *http.Request) {
		if s.Broken == "unverified" {
			http.Error(w, "wrong", http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /identity", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"name": s.Name, "release": s.Release, "epoch": s.Epoch, "pid": os.Getpid()})
	})
	mux.HandleFunc("POST /rows", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.write(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "written")
	})
	server := &http.Server{Addr: "127.0.0.1:" + port, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if s.Broken == "late_exit" {
		time.AfterFunc(500*time.Millisecond, func() { os.Exit(3) })
	}
	go func() {
		<-ctx.Done()
		limited, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(limited)
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// write commits one row, unless new work is not admitted or another incarnation owns the home.
func (s service) write() error {
	if err := s.Fence(); err != nil {
		return err
	}
	return s.insert()
}

func (s service) insert() error {
	if err := s.Check(s.Dir); err != nil {
		return err
	}
	_, err := s.db.Exec("INSERT INTO rows (release, epoch) VALUES (?, ?)", s.Release, s.Epoch)
	return err
}
