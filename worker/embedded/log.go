package embedded

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// serverLogger hands the log of the Temporal server to slog. Its routine messages become debug messages: hundreds at
// every start, of use only to someone who debugs the server.
type serverLogger struct {
	to *slog.Logger
	// stopping makes everything routine: while the services stop one after the other, each reports that it lost the next.
	stopping *atomic.Bool
}

// noHTTP begins the warning at every start that the HTTP API is off. It is off on purpose: web pages could call it.
const noHTTP = "HTTP API port has not been set"

func newServerLogger(to *slog.Logger) serverLogger {
	return serverLogger{to: to, stopping: new(atomic.Bool)}
}

var (
	_ log.Logger      = serverLogger{}
	_ log.WithLogger  = serverLogger{}
	_ log.SLogWrapper = serverLogger{}
)

func (l serverLogger) Debug(msg string, tags ...tag.Tag)  { l.log(slog.LevelDebug, msg, tags) }
func (l serverLogger) Info(msg string, tags ...tag.Tag)   { l.log(slog.LevelDebug, msg, tags) }
func (l serverLogger) Error(msg string, tags ...tag.Tag)  { l.log(slog.LevelError, msg, tags) }
func (l serverLogger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

func (l serverLogger) Warn(msg string, tags ...tag.Tag) {
	if strings.HasPrefix(msg, noHTTP) {
		l.Debug(msg, tags...)
		return
	}
	l.log(slog.LevelWarn, msg, tags)
}

func (l serverLogger) Panic(msg string, tags ...tag.Tag) {
	l.log(slog.LevelError, msg, tags)
	panic(msg)
}

// Fatal ends the process, as the server's own logger does: the server calls it where it cannot go on and expects it not
// to return.
func (l serverLogger) Fatal(msg string, tags ...tag.Tag) {
	l.log(slog.LevelError, msg, tags)
	os.Exit(1)
}

func (l serverLogger) With(tags ...tag.Tag) log.Logger {
	return serverLogger{to: slog.New(l.to.Handler().WithAttrs(attrs(tags))), stopping: l.stopping}
}

// SLog is for the parts of the server that log with slog themselves.
func (l serverLogger) SLog() *slog.Logger { return l.to }

func (l serverLogger) log(level slog.Level, msg string, tags []tag.Tag) {
	if l.stopping.Load() {
		level = slog.LevelDebug
	}
	ctx := context.Background()
	if l.to.Enabled(ctx, level) {
		l.to.LogAttrs(ctx, level, msg, attrs(tags)...)
	}
}

func attrs(tags []tag.Tag) []slog.Attr {
	out := make([]slog.Attr, len(tags))
	for i, t := range tags {
		out[i] = slog.Any(t.Key(), t.Value())
	}
	return out
}
