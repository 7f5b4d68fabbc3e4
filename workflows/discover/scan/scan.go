// Package scan is the start input of a DiscoveryScan, and what one scan decides of the conversations that it sees. It does
// no I/O. The struct tags are the contract, as in the package goal; docs/discovery-input.md is generated from them.
package scan

//go:generate go test -run TestDiscoveryInputReference -update

import "encoding/json"

// Scan says which project's conversations are looked at, and which of them are put to work.
type Scan struct {
	// Name of a site profile.
	Site string `json:"site" min:"1" max:"64" form:"name"`
	// Name of a login. Default: the site's name.
	Browser string `json:"browser,omitempty" max:"64" form:"name"`
	// Page of the project. Only conversations whose own address carries the id of that project belong to it.
	PageURL string `json:"page_url" min:"1" max:"2048" form:"page"`
	// The [start input](input.md) of every run that is started, without `target`. `adopt` is always on: the conversation is first
	// asked for its task, and `adopt.scopes` says which scopes it may name.
	Goal json.RawMessage `json:"goal"`
	// Which conversations are put to work. An old project is never enrolled as a whole.
	Enroll Enroll `json:"enroll"`
	// Ids of conversations that are left alone, whatever else holds.
	Exclude []string `json:"exclude,omitempty" items:"500" max:"128" form:"key"`
	// Most runs that one scan starts; the next scan goes on.
	MaxEnrollments *int `json:"max_enrollments,omitempty" default:"5" min:"1" max:"50"`
	// Most conversations that one scan reads from the page, newest first.
	MaxConversations *int `json:"max_conversations,omitempty" default:"200" min:"1" max:"500"`
}

// Enroll is a choice of conversations. Exactly one of `listed` and `created_after`.
type Enroll struct {
	// Ids of conversations.
	Listed []string `json:"listed,omitempty" items:"200" max:"128" form:"key"`
	// Conversations that were created after this time (RFC 3339, like `2026-11-01T00:00:00Z`), as far as the site's ids tell.
	CreatedAfter string `json:"created_after,omitempty" max:"64"`
}
