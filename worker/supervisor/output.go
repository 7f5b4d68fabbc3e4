package supervisor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	// maxLine is where longer lines are cut in two.
	maxLine = 64 << 10
	// maxLogFile is the size in bytes at which a log file is renamed to LOGFILE.1, replacing the one before.
	maxLogFile = 10 << 20
	// drainTime is how long the output of a child may lag behind its end.
	drainTime = time.Second
)

// sharedWriter keeps the lines of several children apart.
type sharedWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *sharedWriter) writeLine(prefix string, line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.to, "%s | %s\n", prefix, line)
}

// output carries what a child writes, line by line, to our stderr and its log file.
type output struct {
	// pipe is the child's stdout and stderr.
	pipe   *os.File
	read   *os.File
	copied chan struct{}
}

func openOutput(out *sharedWriter, c Child, log *slog.Logger) (*output, error) {
	var file *logFile
	if c.LogFile != "" {
		var err error
		if file, err = openLogFile(c.LogFile, maxLogFile); err != nil {
			return nil, fmt.Errorf("log file of %s: %w", c.Name, err)
		}
	}
	read, pipe, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, file.close())
	}
	o := &output{pipe: pipe, read: read, copied: make(chan struct{})}
	go func() {
		defer close(o.copied)
		if err := errors.Join(copyLines(read, c.Name, out, file), file.close()); err != nil {
			log.Warn("log file is incomplete", "file", c.LogFile, "error", err)
		}
	}()
	return o, nil
}

// close is called when the child has ended. A process that outlives it may still hold the pipe, so the rest is read
// within a bound.
func (o *output) close() {
	_ = o.pipe.Close()
	_ = o.read.SetReadDeadline(time.Now().Add(drainTime))
	<-o.copied
	_ = o.read.Close()
}

// copyLines reads until r ends. An error of the log file does not stop the lines to out; the first is returned.
func copyLines(r io.Reader, name string, out *sharedWriter, file *logFile) error {
	lines := bufio.NewReaderSize(r, maxLine)
	var fileErr error
	for {
		line, _, err := lines.ReadLine()
		if err != nil {
			return fileErr
		}
		out.writeLine(name, line)
		if file != nil && fileErr == nil {
			fileErr = file.writeLine(line)
		}
	}
}

// logFile is a private file of bounded size.
type logFile struct {
	path string
	max  int64
	file *os.File
	size int64
}

func openLogFile(path string, max int64) (*logFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &logFile{path: path, max: max, file: f, size: info.Size()}, nil
}

func (l *logFile) writeLine(line []byte) error {
	if l.size > 0 && l.size+int64(len(line))+1 > l.max {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(append(line[:len(line):len(line)], '\n'))
	l.size += int64(n)
	return err
}

func (l *logFile) rotate() error {
	if err := errors.Join(l.file.Close(), os.Rename(l.path, l.path+".1")); err != nil {
		return err
	}
	next, err := openLogFile(l.path, l.max)
	if err != nil {
		return err
	}
	*l = *next
	return nil
}

func (l *logFile) close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}
