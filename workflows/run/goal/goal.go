// Package goal is the start input of a WorkflowRun: its schema, limits and defaults. It does no I/O.
//
// The struct tags are the contract: json names a key, default is what an absent key means, and min, max, items, form and
// oneof are its limits (see strict.Limits). Decode enforces them, Normalize fills the defaults, and docs/input.md is
// generated from them and from the comments below.
package goal

//go:generate go test -run TestInputReference -update

// Goal is what one run works for: an objective, the conversation that pursues it, and how DONE is verified.
type Goal struct {
	// What DONE means, in words. It stands in the prompts that enroll, correct or recover the conversation.
	Objective string `json:"objective" min:"1" max:"8000" lines:"true"`
	// One line that every prompt carries. Default: the first sentence of the objective.
	Outcome string `json:"outcome,omitempty" max:"200"`
	// The conversation.
	Target Target `json:"target"`
	// Hints for the prompts, never authority. May be filled once by a later start when it was empty.
	Context *Context `json:"context,omitempty"`
	// Names the lower durable goal that the conversation works in; every receipt repeats it.
	// Default: `goal:<key>`, or `goal:<first 8 characters of the conversation id>`.
	Scope string `json:"scope,omitempty" max:"512" form:"scope"`
	// How a DONE is verified: at least one check, or `operator_approval: true`.
	Completion Completion `json:"completion"`
	// What counts as progress beside the words of the assistant. Without probes the receipt's checkpoint and evidence count.
	Progress []Probe `json:"progress,omitempty" items:"16"`
	// Budgets and pace. The first start of a lineage sets the maxima, later ones can only shrink them. 0 never means unlimited.
	Continuation Continuation `json:"continuation,omitzero"`
	// For which reasons the assistant may ask for a person.
	UserBlocker UserBlocker `json:"user_blocker,omitzero"`
	// Begin with one prompt that changes nothing: the conversation is asked which task it works on. For an existing
	// conversation whose goal is not known, and only the first time it is enrolled.
	Adopt *Adopt `json:"adopt,omitempty"`
	// An operator's decision to start over an exhausted or failing lineage; opens a new budget window.
	Replan *Replan `json:"replan,omitempty"`
}

// Target is one exact conversation, or a new one that the first send creates.
type Target struct {
	// Name of a site profile.
	Site string `json:"site" min:"1" max:"64" form:"name"`
	// Name of a login, which is one browser profile. Default: the site's name.
	Browser string `json:"browser,omitempty" max:"64" form:"name"`
	// Address of the conversation: https, or http on loopback. Exactly one of `conversation_url` and `new`.
	ConversationURL string `json:"conversation_url,omitempty" max:"2048" form:"page"`
	// A conversation that does not exist yet.
	New *NewConversation `json:"new,omitempty"`
}

// NewConversation names a conversation before the site has given it an id.
type NewConversation struct {
	// Your name for it; one open run per key. Part of the workflow id `run:<site>:new:<key>`.
	Key string `json:"key" min:"1" max:"128" form:"key"`
	// The page to start from, for example a project. Default: the site's start page.
	PageURL string `json:"page_url,omitempty" max:"2048" form:"page"`
}

// Context holds hints that prompts may repeat.
type Context struct {
	// Tool mention of the chat app, for example `@forge`.
	Mention string `json:"mention,omitempty" max:"64"`
	// Where the assistant's tools work.
	Workspace *Workspace `json:"workspace,omitempty"`
	// Tools that the assistant should know of.
	Tools []string `json:"tools,omitempty" items:"32" max:"64" form:"key"`
}

// Workspace is a repository and a checkout of it. It allocates nothing.
type Workspace struct {
	// Name of the repository.
	Repo string `json:"repo,omitempty" max:"512"`
	// Absolute path of the checkout.
	Checkout string `json:"checkout,omitempty" max:"4096" form:"path"`
}

// Completion is the contract that a DONE must fulfil. It only reads.
type Completion struct {
	// Host whose checks worker runs the checks. Default: the host of the worker that accepted the start.
	Host string `json:"host,omitempty" max:"253" form:"host"`
	// Every check must pass at the moment of the DONE.
	Checks []Check `json:"checks,omitempty" items:"32"`
	// What the receipt itself must bring.
	Evidence Evidence `json:"evidence,omitzero"`
	// A person must approve the DONE, after all checks have passed.
	OperatorApproval bool `json:"operator_approval,omitempty" default:"false"`
}

// Evidence is what a DONE receipt must name.
type Evidence struct {
	// Fewest evidence items of a DONE.
	Min int `json:"min,omitempty" default:"0" min:"0" max:"16"`
}

// Check is one named proof. Exactly one of `command`, `file` and `http`.
type Check struct {
	// Unique name; corrections and progress probes refer to it.
	Name string `json:"name" min:"1" max:"64" form:"key"`
	// A command that must end as expected.
	Command *Command `json:"command,omitempty"`
	// A file that must be as expected.
	File *File `json:"file,omitempty"`
	// An address that must answer as expected.
	HTTP *HTTP `json:"http,omitempty"`
}

// Command runs without a shell, in its own process group, which is ended as a whole at the time-out.
type Command struct {
	// The program and its arguments, one entry each.
	Argv []string `json:"argv" items:"64" max:"4096"`
	// Absolute path of the folder to run in.
	Dir string `json:"dir" min:"1" max:"4096" form:"path"`
	// Longest run.
	Timeout *Duration `json:"timeout,omitempty" default:"10m" min:"1s" max:"1h"`
	// Names of variables that the command may see from the worker's environment, beside a fixed basic set.
	Env []string `json:"env,omitempty" items:"32" max:"128" form:"variable"`
	// The exit code that passes.
	Exit *int `json:"exit,omitempty" default:"0" min:"0" max:"255"`
	// Regular expression (RE2) that the output must match too.
	Match string `json:"match,omitempty" max:"512" form:"regexp"`
}

// File is a file as evidence; what is given must all hold. A file without further keys must exist.
type File struct {
	// Absolute path.
	Path string `json:"path" min:"1" max:"4096" form:"path"`
	// `false`: nothing may be at the path, and no other rule may be given.
	Exists *bool `json:"exists,omitempty" default:"true"`
	// Text that the file must hold.
	Contains string `json:"contains,omitempty" max:"1000"`
	// Digest of the whole file, in lower-case hex.
	SHA256 string `json:"sha256,omitempty" max:"64" form:"sha256"`
	// Absolute path of a git work tree. The file must not be older than its HEAD commit and its changed files.
	FreshFor string `json:"fresh_for,omitempty" max:"4096" form:"path"`
	// Regular expression (RE2) that finds the run in the file. With a group, what the group matched must name this run:
	// its task, workflow, conversation or scope id.
	RunID string `json:"run_id,omitempty" max:"512" form:"regexp"`
	// Regular expression (RE2) with one group that matches a count. The sum of all matches must be at least 1 and not
	// smaller than it was at the start.
	Total string `json:"total,omitempty" max:"512" form:"regexp"`
}

// HTTP is one GET request. Redirects to another host are not followed.
type HTTP struct {
	// Address: loopback, or a host that the checks worker allows.
	URL string `json:"url" min:"1" max:"2048" form:"url"`
	// The status that passes.
	Status *int `json:"status,omitempty" default:"200" min:"100" max:"599"`
	// Longest wait for the whole answer.
	Timeout *Duration `json:"timeout,omitempty" default:"10s" min:"100ms" max:"1m"`
}

// Probe is one source of progress. Exactly one of `git`, `file` and `check`.
type Probe struct {
	// HEAD and changes of a git work tree.
	Git *GitProbe `json:"git,omitempty"`
	// The content of a file.
	File *FileProbe `json:"file,omitempty"`
	// The outcome of the completion check with this name.
	Check string `json:"check,omitempty" max:"64" form:"key"`
}

// GitProbe watches a git work tree.
type GitProbe struct {
	// Absolute path of the work tree.
	Dir string `json:"dir" min:"1" max:"4096" form:"path"`
}

// FileProbe watches a file.
type FileProbe struct {
	// Absolute path; the file may be absent.
	Path string `json:"path" min:"1" max:"4096" form:"path"`
}

// Continuation bounds how long and how fast a run goes on.
type Continuation struct {
	// Semantic rounds; at the maximum the run blocks as `round_budget_exhausted`.
	MaxRounds *int `json:"max_rounds,omitempty" default:"50" min:"1" max:"1000"`
	// Receipts in a row without progress; at the maximum the run blocks as `repeated_state`.
	MaxRepeatedState *int `json:"max_repeated_state,omitempty" default:"4" min:"1" max:"100"`
	// Receipts in a row without progress before the one root-cause prompt.
	StagnationAfter *int `json:"stagnation_after,omitempty" default:"2" min:"1" max:"100"`
	// Mechanical send failures in a row; at the maximum the run blocks as `consecutive_failures`.
	MaxProviderFailures *int `json:"max_provider_failures,omitempty" default:"3" min:"1" max:"20"`
	// Authorized attempts of one effect.
	MaxGenerations *int `json:"max_generations,omitempty" default:"3" min:"1" max:"10"`
	// Looks at an effect of unknown outcome before an operator is asked.
	UnknownBound *int `json:"unknown_bound,omitempty" default:"4" min:"1" max:"20"`
	// Settled turns without a valid receipt; beyond it the run blocks as `protocol_violation`.
	MaxProtocolViolations *int `json:"max_protocol_violations,omitempty" default:"3" min:"0" max:"20"`
	// Automatic rearms of a failure fuse; then only an operator.
	MaxRecoveryEpochs *int `json:"max_recovery_epochs,omitempty" default:"3" min:"0" max:"20"`
	// Automatic recovery turns in a row after an explicit provider failure.
	MaxRecoveries *int `json:"max_recoveries,omitempty" default:"1" min:"0" max:"10"`
	// Floor between turns of this run. Default: the site's.
	MinInterval *Duration `json:"min_interval,omitempty" min:"0s" max:"24h"`
	// An unresolved turn or a long wait shows in the inbox after this time; nothing is re-sent.
	AttentionAfter *Duration `json:"attention_after,omitempty" default:"45m" min:"1s" max:"168h"`
	// Accepted forms of the receipt; the prompt asks for the first. Default: `block`, `compact`.
	Receipts []string `json:"receipts,omitempty" items:"2" max:"16" oneof:"block compact"`
}

// UserBlocker says which requests for a person are legitimate.
type UserBlocker struct {
	// Accepted kinds of `user_action`; an empty list accepts none. Default: every kind but `other`. `other` is accepted only
	// after one correction round came back with the same request.
	Allowed []string `json:"allowed" items:"8" max:"32" oneof:"authorization consent legal payment credentials physical_action decision other"`
}

// Adopt says which scope a conversation may name as its own.
type Adopt struct {
	// Regular expression (RE2) that the whole `active_scope` must match which the assistant proposes; it is registered once, and
	// until then no DONE counts. The goal's own scope is always accepted. Default: `goal:.*`.
	Scopes string `json:"scopes,omitempty" max:"512" form:"regexp"`
}

// Replan is the word of an operator. It alone may add to a budget.
type Replan struct {
	// Who decided.
	Operator string `json:"operator" min:"1" max:"512"`
	// Why.
	Reason string `json:"reason" min:"1" max:"2000"`
	// Rounds added to what the lineage had.
	AddRounds int `json:"add_rounds" min:"1" max:"1000"`
}
