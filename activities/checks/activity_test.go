package checks_test

import (
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"

	"steward/activities"
)

// TestRun_as_an_activity runs a check as a worker would: with heartbeats, and with the result through the data converter.
func TestRun_as_an_activity(t *testing.T) {
	p := newPlace(t)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	beats := make(chan struct{}, 100)
	env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) { beats <- struct{}{} })
	env.RegisterActivity(p.Run)
	value, err := env.ExecuteActivity(p.Run, activities.CheckInput{Checks: parse(t, `{"name":"a",`+p.command(t, "", "sleep", "0.2")+`}`)})
	if err != nil {
		t.Fatal(err)
	}
	var result activities.CheckResult
	if err := value.Get(&result); err != nil {
		t.Fatal(err)
	}
	if len(result.Evidence) != 1 || result.Evidence[0].Outcome != pass || result.Evidence[0].Took < 200 {
		t.Errorf("result: %+v", result)
	}
	if len(beats) == 0 {
		t.Error("no heartbeat")
	}
}
