// Package plan is the start input of a ReleaseSession: its schema, limits and defaults. It does no I/O.
//
// The struct tags are the contract: json names a key, default is what an absent key means, and min, max, items, form and
// oneof are its limits (see strict.Limits). Decode enforces them, Normalize fills the defaults, and docs/release-input.md is
// generated from them and from the comments below.
package plan

import "steward/workflows/run/goal"

//go:generate go test -run TestReleaseInputReference -update

// Duration is a Go duration string, like everywhere in inputs.
type Duration = goal.Duration

// Plan is one release: what is built from which revision, what must be proven of it, and which running service it replaces.
//
// Commands are argument lists without a shell. Their first entry is a path inside a release: gates and canaries run the
// binary of the candidate's own release, verification of the live service the one of the installed release. An absolute path,
// or a program that is searched in PATH, is refused; only `build` may name a program of the host.
//
// Arguments, addresses and the values of `set` may hold `{release}` (folder of the release in the store), `{home}`, `{port}`,
// `{label}`, `{database}`, `{token_file}` (both absolute) and `{source}` (folder of the frozen source; gates only).
type Plan struct {
	// Name of the installation. The workflow id is `release:<instance>`; one open session per instance.
	Instance string `json:"instance" min:"1" max:"64" form:"name"`
	// Who asks. A revision that has a finished session gets no second `automatic` one; a person may try again.
	Origin string `json:"origin,omitempty" default:"person" max:"16" oneof:"automatic person"`
	// What is released.
	Source Source `json:"source"`
	// How the release is made of the source.
	Build Build `json:"build"`
	// What must hold of the frozen source before anything is started.
	Gates Gates `json:"gates"`
	// What must hold of the isolated candidate while it runs.
	Canaries Canaries `json:"canaries"`
	// The running service, which is also how the candidate is run.
	Service Service `json:"service"`
	// Where the candidate runs. It shares nothing with the service.
	Candidate Candidate `json:"candidate"`
	// `automatic` switches as soon as everything is proven, `manual` waits for `promote`.
	Cutover string `json:"cutover,omitempty" default:"automatic" max:"16" oneof:"automatic manual"`
	// What must hold after the switch before the release counts as known-good.
	Soak Soak `json:"soak"`
	// How long each part may take. Past a deadline the session ends: before the switch as `failed`, after it with a rollback.
	Deadlines Deadlines `json:"deadlines,omitzero"`
	// What is kept.
	Retention Retention `json:"retention,omitzero"`
}

// Source is one exact commit of a repository on the recovery host.
type Source struct {
	// Absolute path of the git repository. It is only read; the source is checked out elsewhere.
	Repository string `json:"repository" min:"1" max:"4096" form:"path"`
	// The whole commit id.
	Revision string `json:"revision" min:"1" max:"64" form:"revision"`
}

// Build makes the release. It runs in the frozen source, without network rules of its own.
type Build struct {
	// The program and its arguments. The program may be searched in PATH.
	Argv []string `json:"argv" items:"64" max:"4096"`
	// Folder of the source that holds the result; its content becomes the release, read-only.
	Output string `json:"output" min:"1" max:"1024" form:"inside"`
	// Longest run.
	Timeout *Duration `json:"timeout,omitempty" default:"30m" min:"1s" max:"6h"`
	// Names of variables that the build may see from the environment of the recovery process, beside a fixed basic set.
	Env []string `json:"env,omitempty" items:"32" max:"128" form:"variable"`
}

// Gates are proven once per frozen revision, in this order. They run in the folder of the frozen source.
type Gates struct {
	// Types and compilation.
	Type Command `json:"type"`
	// The architecture rules of the source.
	Architecture Command `json:"architecture"`
	// Documents and generated files that must agree with the source.
	ArchitectureSync Command `json:"architecture_sync"`
	// A new home can be made and opened.
	Bootstrap Command `json:"bootstrap"`
}

// Canaries are proven of the isolated candidate, in this order.
type Canaries struct {
	// The candidate comes back after a restart with what it had.
	RecoveryRestart Check `json:"recovery_restart"`
	// Its tool interface answers.
	MCP Check `json:"mcp"`
	// Its scheduler works.
	Scheduler Check `json:"scheduler"`
	// Its supervisor can take over what the running release has open.
	Supervisor Check `json:"supervisor"`
	// Its controller works.
	Controller Check `json:"controller"`
}

// Check is one proof. Exactly one of `command` and `http`.
type Check struct {
	// A command that must end with exit code 0.
	Command *Command `json:"command,omitempty"`
	// An address that must answer as expected.
	HTTP *HTTP `json:"http,omitempty"`
}

// Command runs without a shell, in its own process group, which is ended as a whole at the time-out. Exit code 0 passes, 75 is
// inconclusive, 66 means no data, every other code fails; none but 0 is ever a pass.
type Command struct {
	// Path of the program inside the release, then its arguments.
	Argv []string `json:"argv" items:"64" max:"4096"`
	// Longest run.
	Timeout *Duration `json:"timeout,omitempty" default:"10m" min:"1s" max:"6h"`
	// Names of variables that the command may see from the environment of the recovery process, beside a fixed basic set.
	Env []string `json:"env,omitempty" items:"32" max:"128" form:"variable"`
}

// HTTP is one GET request on this host. Redirects are not followed. No answer is inconclusive, a wrong one fails.
type HTTP struct {
	// Loopback address, like `http://127.0.0.1:{port}/ready`.
	URL string `json:"url" min:"1" max:"2048" form:"loopback"`
	// The status that passes.
	Status *int `json:"status,omitempty" default:"200" min:"100" max:"599"`
	// Regular expression (RE2) that the body must match too.
	Match string `json:"match,omitempty" max:"512" form:"regexp"`
	// Longest wait for the whole answer.
	Timeout *Duration `json:"timeout,omitempty" default:"10s" min:"100ms" max:"1m"`
}

// Service is the contract of the running service.
type Service struct {
	// Name of the service on its host: the systemd unit, or the record of the process provider.
	Label string `json:"label" min:"1" max:"64" form:"name"`
	// Who runs it: `process` is the recovery process itself, `systemd` a user unit.
	Provider string `json:"provider,omitempty" default:"process" max:"16" oneof:"process systemd"`
	// Path of the program inside the release, then its arguments.
	Argv []string `json:"argv" items:"64" max:"4096"`
	// Absolute path of the state folder. Releases never live in it.
	Home string `json:"home" min:"1" max:"4096" form:"path"`
	// TCP port that it listens on; 0 for none.
	Port int `json:"port,omitempty" default:"0" min:"0" max:"65535"`
	// Passes when the service serves. Nothing else is waited for while no service runs.
	Ready Check `json:"ready"`
	// The strict verification of the live service: run once after a switch, and of the running release before it.
	Verify []Check `json:"verify,omitempty" items:"16"`
	// Its SQLite database.
	Database *Database `json:"database,omitempty"`
	// File with its token, below home. The candidate gets a new one; tokens are never copied.
	TokenFile string `json:"token_file,omitempty" max:"1024" form:"inside"`
	// Names of variables that the service may see from the environment of the recovery process, beside a fixed basic set.
	Env []string `json:"env,omitempty" items:"32" max:"128" form:"variable"`
	// Variables with fixed values. No secrets: they stand in the history of the session.
	Set []Variable `json:"set,omitempty" items:"32"`
	// Run after the new release is ready, to point clients at it.
	Connector *Command `json:"connector,omitempty"`
	// Longest wait for a start to be ready.
	StartTimeout *Duration `json:"start_timeout,omitempty" default:"1m" min:"1s" max:"30m"`
	// Longest wait for a stop before the process group is killed.
	StopTimeout *Duration `json:"stop_timeout,omitempty" default:"20s" min:"1s" max:"10m"`
}

// Variable is one variable of the environment.
type Variable struct {
	// Its name.
	Name string `json:"name" min:"1" max:"128" form:"name_of_variable"`
	// Its value.
	Value string `json:"value" max:"4096"`
}

// Database is a SQLite file that goes along with the service.
type Database struct {
	// File below home.
	File string `json:"file" min:"1" max:"1024" form:"inside"`
	// Whether the running release can work on with what the new one writes. `false` needs `promote` by a person.
	BackwardCompatible *bool `json:"backward_compatible"`
}

// Candidate is where the candidate runs.
type Candidate struct {
	// Absolute path of its state folder, which is made and removed by the session.
	Home string `json:"home" min:"1" max:"4096" form:"path"`
	// TCP port; 0 when the service has none.
	Port int `json:"port,omitempty" default:"0" min:"0" max:"65535"`
	// Name of the candidate's service.
	Label string `json:"label" min:"1" max:"64" form:"name"`
}

// Soak is the time between the switch and known-good.
type Soak struct {
	// Shortest time that the release must serve.
	Time *Duration `json:"time,omitempty" default:"10m" min:"0s" max:"168h"`
	// How often the live service is looked at meanwhile.
	LookEvery *Duration `json:"look_every,omitempty" default:"1m" min:"1s" max:"1h"`
	// CPU use of the idle service.
	Performance Performance `json:"performance,omitzero"`
	// The proof that the active release can do its work.
	LiveProof LiveProof `json:"live_proof"`
}

// Performance is what counts as a service that runs away. Windows that are off schedule count for nothing.
type Performance struct {
	// Time after the switch before the first window.
	WarmUp *Duration `json:"warm_up,omitempty" default:"1m" min:"0s" max:"1h"`
	// Number of windows that must be on schedule.
	Windows *int `json:"windows,omitempty" default:"30" min:"1" max:"360"`
	// Length of one window.
	Window *Duration `json:"window,omitempty" default:"10s" min:"100ms" max:"5m"`
	// Highest mean over all windows, in percent of one core.
	MaxMeanCPU *int `json:"max_mean_cpu,omitempty" default:"5" min:"1" max:"6400"`
	// Highest 95th percentile of the windows, in percent of one core.
	MaxP95CPU *int `json:"max_p95_cpu,omitempty" default:"10" min:"1" max:"6400"`
}

// LiveProof is how the active release shows that it works. Exactly one of `steward` and `command`, as `kind` says.
type LiveProof struct {
	// `steward`: a disposable acceptance run of Steward itself, over one restart. `command`: the service's own proof.
	Kind string `json:"kind" min:"1" max:"16" oneof:"steward command"`
	// The acceptance run.
	Steward *AcceptanceRun `json:"steward,omitempty"`
	// A command of the installed release; it must show work that was done after the switch.
	Command *Command `json:"command,omitempty"`
	// Longest time from one completion to the next message of the acceptance run; later is a failed proof of timing.
	// Default: the site's pace between turns, and 30 s.
	MaxSuccessorLatency *Duration `json:"max_successor_latency,omitempty" min:"1s" max:"24h"`
}

// AcceptanceRun is a run with three turns: CONTINUE, CONTINUE, DONE.
type AcceptanceRun struct {
	// Site profile of the run.
	Site string `json:"site" min:"1" max:"64" form:"name"`
	// Login of the run. Default: the site's name.
	Browser string `json:"browser,omitempty" max:"64" form:"name"`
	// The page that a new conversation starts from. Default: the site's start page.
	PageURL string `json:"page_url,omitempty" max:"2048" form:"page"`
	// An existing conversation of its own, instead of a new one for each session.
	ConversationURL string `json:"conversation_url,omitempty" max:"2048" form:"page"`
	// What the assistant is asked. It must answer CONTINUE twice and then DONE.
	Objective string `json:"objective,omitempty" default:"Answer CONTINUE twice, then DONE." max:"8000" lines:"true"`
}

// Deadlines are counted from the moment at which the part begins.
type Deadlines struct {
	// Check out the source.
	Freeze *Duration `json:"freeze,omitempty" default:"10m" min:"1s" max:"24h"`
	// Build and store the release.
	Build *Duration `json:"build,omitempty" default:"1h" min:"1s" max:"24h"`
	// All gates.
	Gates *Duration `json:"gates,omitempty" default:"1h" min:"1s" max:"24h"`
	// Start the candidate.
	Candidate *Duration `json:"candidate,omitempty" default:"15m" min:"1s" max:"24h"`
	// All canaries.
	Canaries *Duration `json:"canaries,omitempty" default:"1h" min:"1s" max:"24h"`
	// Verify the running service, from the last canary until the switch may begin.
	Verify *Duration `json:"verify,omitempty" default:"15m" min:"1s" max:"24h"`
	// What waits for a person: `promote`, or the word on an operation whose outcome is unknown.
	Person *Duration `json:"person,omitempty" default:"24h" min:"1s" max:"720h"`
	// The switch.
	Cutover *Duration `json:"cutover,omitempty" default:"15m" min:"1s" max:"24h"`
	// From the switch until the new release was seen serving.
	Commit *Duration `json:"commit,omitempty" default:"5m" min:"1s" max:"24h"`
	// The soak with everything that it proves; longer than its time.
	Soak *Duration `json:"soak,omitempty" default:"6h" min:"1s" max:"720h"`
	// The way back.
	Rollback *Duration `json:"rollback,omitempty" default:"15m" min:"1s" max:"24h"`
}

// Retention bounds what is kept. The active release, the previous one and every release with a known-good bundle stay.
type Retention struct {
	// Releases in the store beside those.
	Releases *int `json:"releases,omitempty" default:"3" min:"0" max:"100"`
	// Known-good bundles.
	Bundles *int `json:"bundles,omitempty" default:"3" min:"1" max:"20"`
	// Records of finished sessions.
	Sessions *int `json:"sessions,omitempty" default:"200" min:"10" max:"10000"`
}
