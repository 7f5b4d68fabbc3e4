package main

import (
	"errors"
	"fmt"
)

// Exit codes. docs/operating.md lists them.
const (
	exitFailed       = 1   // something went wrong on the way
	exitUsage        = 2   // wrong flags, settings or a start input that is refused for what it says
	exitRefused      = 3   // the run, or its lineage, refused what was asked
	exitNotFound     = 4   // there is no such run
	exitUnfinished   = 5   // the run ended, but not as goal_complete
	exitInconclusive = 75  // nothing was proven either way
	exitInterrupted  = 130 // Ctrl-C
)

// exitError gives an error its exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func exitWith(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

func exitCode(err error) int {
	var coded *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		return coded.code
	}
	return exitFailed
}
