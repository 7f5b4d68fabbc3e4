package checks_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"steward/activities"
	"steward/activities/checks"
)

func TestHTTP(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "elsewhere") }))
	defer elsewhere.Close()
	release := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("Cookie") != "" {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprintln(w, "token=abcdef fine")
	})
	mux.HandleFunc("/down", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, "starting")
	})
	mux.HandleFunc("/hang", func(http.ResponseWriter, *http.Request) { <-release })
	mux.HandleFunc("/slow-body", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "x")
		w.(http.Flusher).Flush()
		<-release
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 3<<20)) })
	mux.Handle("/moved", http.RedirectHandler("/ok", http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	mux.Handle("/off", http.RedirectHandler(elsewhere.URL+"/secret?x=y", http.StatusFound))
	mux.HandleFunc("/drop", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	defer close(release)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()

	p := newPlace(t, func(l *checks.Limits) { l.HTTPHosts = []string{"steward.invalid"} })
	tests := map[string]struct {
		url, more string
		outcome   activities.CheckOutcome
		code      string
		line      string
	}{
		"ok":                 {server.URL + "/ok", ``, pass, "", "status 200: token=*** fine"},
		"by name":            {fmt.Sprintf("http://localhost:%d/ok", port), ``, pass, "", ""},
		"status":             {server.URL + "/down", ``, fail, "status_mismatch", "status 503, not 200: starting"},
		"wanted status":      {server.URL + "/down", `,"status":503`, pass, "", ""},
		"not found":          {server.URL + "/none", ``, fail, "status_mismatch", "status 404"},
		"redirect followed":  {server.URL + "/moved", ``, pass, "", ""},
		"redirect wanted":    {server.URL + "/off", `,"status":302`, pass, "", ""},
		"redirect off host":  {server.URL + "/off", ``, fail, "redirect_refused", "it leads to 127.0.0.1"},
		"redirect loop":      {server.URL + "/loop", ``, fail, "redirect_refused", "more than 5"},
		"time-out":           {server.URL + "/hang", `,"timeout":"150ms"`, fail, "timed_out", "within 150ms"},
		"time-out in a body": {server.URL + "/slow-body", `,"timeout":"150ms"`, fail, "timed_out", "within 150ms"},
		"large body":         {server.URL + "/large", ``, pass, "", "xxx"},
		"closed port":        {"http://" + closed.Addr().String(), ``, fail, "unreachable", "refused"},
		"dropped":            {server.URL + "/drop", ``, fail, "unreachable", "EOF"},
		"unknown host":       {"http://steward.invalid/", ``, unclear, "cannot_run", "steward.invalid"},
		"foreign host":       {"http://192.0.2.1/", ``, unclear, "refused_by_worker", "checks.hosts"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := p.one(t, activities.CheckInput{}, `"http":{"url":`+quote(t, tt.url+"?key=s3cret")+tt.more+`}`)
			wantOutcome(t, e, tt.outcome, tt.code, tt.line)
			if answered := tt.outcome == pass || tt.code == "status_mismatch"; answered != (e.Status != nil) || answered != (e.Digest != "") {
				t.Errorf("evidence: %+v", e)
			}
			if e.Kind != "http" || strings.Contains(quote(t, e), "s3cret") || e.Bytes > 1<<20 {
				t.Errorf("evidence: %+v", e)
			}
		})
	}
}
