package activities

import (
	"encoding/json"

	"steward/workflows/discover/scan"
	"steward/workflows/machine/strict"
)

// AdmitScanInput asks a run worker to resolve the input of a scan.
type AdmitScanInput struct {
	Scan       json.RawMessage `json:"scan"`
	WorkflowID string          `json:"workflow_id"`
}

// AdmitScanResult is the resolved scan, or everything that is wrong with it.
type AdmitScanResult struct {
	Problems []strict.Problem `json:"problems,omitempty"`
	// Scan has every default filled in and the canonical address of the project's page.
	Scan scan.Scan `json:"scan,omitzero"`
	// Project is the id of the project.
	Project string `json:"project,omitempty"`
	Worker  Worker `json:"worker"`
}

// KnownRunsInput asks which of these workflow ids have an open or a closed run.
type KnownRunsInput struct {
	WorkflowIDs []string `json:"workflow_ids"`
}

// KnownRunsResult has the status of the newest run of every workflow id that has one.
type KnownRunsResult struct {
	Status map[string]string `json:"status,omitempty"`
}

// DiscoverInput asks for the conversations that the page of a project lists.
type DiscoverInput struct {
	Site    string `json:"site"`
	Browser string `json:"browser"`
	PageURL string `json:"page_url"`
	// Most bounds the list.
	Most int `json:"most"`
}

// DiscoverResult is an inventory, which is an observation and decides nothing.
type DiscoverResult struct {
	// Readable tells whether the page was shown and could be read; Class and Detail say why not.
	Readable bool   `json:"readable"`
	Class    string `json:"class,omitempty"`
	Detail   string `json:"detail,omitempty"`
	// Conversations are those whose own address carries the project's id, in the order of the page.
	Conversations []scan.Conversation `json:"conversations,omitempty"`
	// Complete: the page listed no more than these.
	Complete bool `json:"complete,omitempty"`
	// Contradictions counts the listed addresses of these conversations that name another project.
	Contradictions int    `json:"contradictions,omitempty"`
	SiteDigest     string `json:"site_digest,omitempty"`
	Worker         Worker `json:"worker"`
}

// InspectInput asks for what stands in one conversation, before it is enrolled.
type InspectInput struct {
	Conversation Conversation `json:"conversation"`
}

// InspectResult tells whether a conversation may be enrolled.
type InspectResult struct {
	// Readable: the conversation was shown at its own address and read to its beginning.
	Readable bool `json:"readable"`
	// Moved: its own page has another address than the one that was asked for.
	Moved bool `json:"moved,omitempty"`
	// Supervised: it holds a message of Steward.
	Supervised bool   `json:"supervised,omitempty"`
	Class      string `json:"class,omitempty"`
	Detail     string `json:"detail,omitempty"`
	SiteDigest string `json:"site_digest,omitempty"`
	Worker     Worker `json:"worker"`
}
