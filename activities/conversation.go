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
}
