package plan

import (
	"cmp"
	"encoding/json"
	"fmt"

	"steward/workflows/machine/strict"
)

// Words of a plan.
const (
	Automatic = "automatic"
	Person    = "person"
	Manual    = "manual"

	ProviderProcess = "process"
	ProviderSystemd = "systemd"

	ProofSteward = "steward"
	ProofCommand = "command"
)

// Gate is a command with the name of the gate that it is for.
type Gate struct {
	Name    string
	Command Command
}

// Canary is a check with the name of the canary that it is for.
type Canary struct {
	Name  string
	Check Check
}

// GateCommands are the static gates in their order. Source: "ReleaseSession state", static_verified.
func (p Plan) GateCommands() []Gate {
	return []Gate{
		{"type", p.Gates.Type},
		{"architecture", p.Gates.Architecture},
		{"architecture_sync", p.Gates.ArchitectureSync},
		{"bootstrap", p.Gates.Bootstrap},
	}
}

// CanaryChecks are the canaries in their order. Source: "ReleaseSession state", candidate_verified.
func (p Plan) CanaryChecks() []Canary {
	return []Canary{
		{"recovery_restart", p.Canaries.RecoveryRestart},
		{"mcp", p.Canaries.MCP},
		{"scheduler", p.Canaries.Scheduler},
		{"supervisor", p.Canaries.Supervisor},
		{"controller", p.Canaries.Controller},
	}
}

// NeedsPerson tells whether the switch waits for promote: a plan says so, or the database has no way back.
func (p Plan) NeedsPerson() bool {
	return p.Cutover == Manual || p.Service.Database != nil && !*p.Service.Database.BackwardCompatible
}

// Normalize fills every default in a valid plan. Normalizing twice is the same as once, and a normalized plan is valid
// input. The plan it is called on keeps its value.
//
//workflowcheck:ignore
func (p Plan) Normalize() Plan {
	p = p.clone()
	p.Origin = cmp.Or(p.Origin, Person)
	p.Cutover = cmp.Or(p.Cutover, Automatic)
	p.Service.Provider = cmp.Or(p.Service.Provider, ProviderProcess)
	if run := p.Soak.LiveProof.Steward; run != nil {
		run.Browser = cmp.Or(run.Browser, run.Site)
		run.Objective = cmp.Or(run.Objective, "Answer CONTINUE twice, then DONE.")
	}
	strict.Defaults(&p)
	return p
}

// clone copies a plan with everything it points to.
func (p Plan) clone() Plan {
	data, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("plan: a plan cannot be written as JSON: %v", err))
	}
	var copied Plan
	if err := json.Unmarshal(data, &copied); err != nil {
		panic(fmt.Sprintf("plan: a plan cannot be read from its own JSON: %v", err))
	}
	return copied
}
