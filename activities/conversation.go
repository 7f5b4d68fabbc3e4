package activities

import "steward/workflows/run/goal"

// ResolveInput asks a run worker what an address means on a site.
type ResolveInput struct {
	Site            string `json:"site"`
	ConversationURL string `json:"conversation_url"`
}

// ResolveResult has the facts of the address, or the problem why no conversation can have it.
type ResolveResult struct {
	Site    goal.SiteFacts `json:"site,omitzero"`
	Problem string         `json:"problem,omitempty"`
	// Lineage is what the last run of that conversation left behind; nil when none has ended. LineageError says why it could
	// not be read.
	Lineage      *Lineage `json:"lineage,omitempty"`
	LineageError string   `json:"lineage_error,omitempty"`
}
