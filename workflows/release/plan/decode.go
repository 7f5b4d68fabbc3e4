package plan

import (
	"fmt"
	"path"
	"strings"
	"time"

	"steward/workflows/machine/strict"
)

// MaxBytes is the largest plan: it becomes part of the state that every continue-as-new carries.
const MaxBytes = 64 << 10

// WorkflowID is the id that the session of an instance must have.
func WorkflowID(instance string) string { return "release:" + instance }

// Decode reads a plan and checks it against everything that can be known without I/O. All problems are returned at once;
// the plan is usable only when there are none. It fills no defaults.
func Decode(raw []byte) (Plan, []strict.Problem) {
	var p Plan
	if len(raw) > MaxBytes {
		return p, []strict.Problem{{Message: fmt.Sprintf("the plan has %d bytes; at most %d are allowed", len(raw), MaxBytes)}}
	}
	problems := strict.Partial(raw, &p)
	return p, strict.Merge(problems, p.Validate())
}

type adder func(path, format string, args ...any)

// Validate checks a plan that was not decoded from JSON in the same way as Decode.
func (p Plan) Validate() []strict.Problem {
	found := strict.Limits(p, forms)
	add := func(path, format string, args ...any) {
		found = append(found, strict.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if len(p.Build.Argv) == 0 || p.Build.Argv[0] == "" {
		add("build.argv", "is empty; give the program and its arguments as a list")
	}
	for _, g := range p.GateCommands() {
		g.Command.validate("gates."+g.Name, true, add)
	}
	for _, c := range p.CanaryChecks() {
		c.Check.validate("canaries."+c.Name, add)
	}
	p.Service.validate(add)
	p.apart(add)
	p.Soak.validate(add)
	if len(found) == 0 {
		p.Normalize().lengths(add)
	}
	return found
}

func (c Command) validate(at string, source bool, add adder) {
	program(at+".argv", c.Argv, add)
	if !source {
		placeholders(at+".argv", c.Argv, add)
	}
}

// program checks that a command is one of the release itself.
func program(at string, argv []string, add adder) {
	switch {
	case len(argv) == 0 || argv[0] == "":
		add(at, "is empty; give the path of a program inside the release, and its arguments, as a list")
	case inside(argv[0]) != "":
		add(at+"[0]", "is %.80q; it must be the path of a program inside the release: other programs cannot be its runner", argv[0])
	}
}

func placeholders(at string, argv []string, add adder) {
	for i, arg := range argv {
		if strings.Contains(arg, "{source}") {
			add(fmt.Sprintf("%s[%d]", at, i), "holds {source}, which only gates have")
		}
	}
}

func (c Check) validate(at string, add adder) {
	if (c.Command != nil) == (c.HTTP != nil) {
		add(at, "needs exactly one of command and http")
	}
	if c.Command != nil {
		c.Command.validate(at+".command", false, add)
	}
}

func (s Service) validate(add adder) {
	program("service.argv", s.Argv, add)
	placeholders("service.argv", s.Argv, add)
	s.Ready.validate("service.ready", add)
	for i, check := range s.Verify {
		check.validate(fmt.Sprintf("service.verify[%d]", i), add)
	}
	if s.Connector != nil {
		s.Connector.validate("service.connector", false, add)
	}
	if s.Database != nil && s.Database.BackwardCompatible == nil {
		add("service.database.backward_compatible", "is missing; say whether the running release can work on with what the new one writes")
	}
	names := map[string]bool{}
	for i, v := range s.Set {
		if names[v.Name] {
			add(fmt.Sprintf("service.set[%d].name", i), "%.128q is set twice", v.Name)
		}
		names[v.Name] = true
	}
}

// apart checks that the candidate shares nothing with the service, and neither lives in the other or in the source.
func (p Plan) apart(add adder) {
	a, b := p.Service, p.Candidate
	if a.Label != "" && a.Label == b.Label {
		add("candidate.label", "is %q, like service.label; give the candidate its own", b.Label)
	}
	switch {
	case a.Port != 0 && a.Port == b.Port:
		add("candidate.port", "is %d, like service.port; give the candidate its own", b.Port)
	case (a.Port == 0) != (b.Port == 0):
		add("candidate.port", "is %d and service.port is %d; give both a port, or neither", b.Port, a.Port)
	}
	folders := []struct{ name, path string }{
		{"source.repository", p.Source.Repository}, {"service.home", a.Home}, {"candidate.home", b.Home},
	}
	for i, one := range folders {
		for _, other := range folders[:i] {
			if one.path != "" && other.path != "" && (within(one.path, other.path) || within(other.path, one.path)) {
				add(one.name, "%.200q and %s %.200q overlap; keep them apart", one.path, other.name, other.path)
			}
		}
	}
}

func within(inner, outer string) bool {
	inner, outer = path.Clean(inner), path.Clean(outer)
	return inner == outer || strings.HasPrefix(inner, strings.TrimSuffix(outer, "/")+"/")
}

func (s Soak) validate(add adder) {
	l := s.LiveProof
	switch l.Kind {
	case "steward":
		if l.Steward == nil {
			add("soak.live_proof.steward", "is missing; kind is steward")
		}
		if l.Command != nil {
			add("soak.live_proof.command", "is given, and kind is steward; leave it out")
		}
	case "command":
		if l.Command == nil {
			add("soak.live_proof.command", "is missing; kind is command")
		}
		if l.Steward != nil {
			add("soak.live_proof.steward", "is given, and kind is command; leave it out")
		}
	}
	if l.Steward != nil && l.Steward.PageURL != "" && l.Steward.ConversationURL != "" {
		add("soak.live_proof.steward.page_url", "is given, and conversation_url too; a conversation that exists starts nowhere")
	}
	if l.Command != nil {
		l.Command.validate("soak.live_proof.command", false, add)
	}
}

// lengths checks that what is to be served fits into its deadline.
func (p Plan) lengths(add adder) {
	perf := p.Soak.Performance
	observed := perf.WarmUp.Std() + time.Duration(*perf.Windows)*perf.Window.Std()
	if least := max(p.Soak.Time.Std(), observed); p.Deadlines.Soak.Std() <= least {
		add("deadlines.soak", "is %v; the soak alone takes %v: allow more", p.Deadlines.Soak, Duration(least))
	}
	if p.Deadlines.Build.Std() < p.Build.Timeout.Std() {
		add("deadlines.build", "is %v and build.timeout %v; allow the build its time", p.Deadlines.Build, p.Build.Timeout)
	}
}
