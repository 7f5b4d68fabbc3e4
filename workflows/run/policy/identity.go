package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// TaskID names the task of a conversation for good: the same for every run that succeeds the first one.
// Source: "Workflow Supervisor authority", Single writer and event journal.
func TaskID(firstWorkflowID string) string { return "t_" + digest(firstWorkflowID)[:12] }

// effectID is derived, so that a workflow reset derives the same id again, and never repeated by a later start.
func (s *State) effectID(sequence int) string {
	return "fx_" + digest(s.TaskID, s.RunID, strconv.Itoa(sequence))[:16]
}

func (s *State) derive(prefix, what string, n int) string {
	return prefix + digest(s.TaskID, s.RunID, what, strconv.Itoa(n))[:16]
}
