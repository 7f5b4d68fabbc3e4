package worker

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func TestMissingSearchAttributesAreTurnedIntoACommand(t *testing.T) {
	require.NoError(t, missingAttributes("work", SearchAttributes()))

	err := missingAttributes("work", map[string]enumspb.IndexedValueType{
		"StewardStatus": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "StewardSite": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"StewardBlocker": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "Other": enumspb.INDEXED_VALUE_TYPE_BOOL,
	})
	require.ErrorContains(t, err, "temporal operator search-attribute create --namespace work --name StewardConversation --type Keyword "+
		"--name StewardRelease --type Keyword --name StewardReleasePhase --type Keyword --name StewardRound --type Int")
	require.NotContains(t, err.Error(), "StewardStatus")

	have := SearchAttributes()
	have["StewardRound"] = enumspb.INDEXED_VALUE_TYPE_TEXT
	require.ErrorContains(t, missingAttributes("work", have), "StewardRound is of type Text and must be Int")
}

func TestAnotherSenderIsSeen(t *testing.T) {
	now := time.Now()
	poller := func(identity string, age time.Duration) *taskqueuepb.PollerInfo {
		return &taskqueuepb.PollerInfo{Identity: identity, LastAccessTime: timestamppb.New(now.Add(-age))}
	}
	own := sendIdentity("host", "/profiles/a")
	require.Equal(t, own, sendIdentity("host", "/profiles/a"))
	for name, c := range map[string]struct {
		pollers []*taskqueuepb.PollerInfo
		refused bool
	}{
		"nobody":                         {nil, false},
		"this worker":                    {[]*taskqueuepb.PollerInfo{poller(own, 0)}, false},
		"its dead predecessor":           {[]*taskqueuepb.PollerInfo{poller("1@"+home(own), time.Second)}, false},
		"another host":                   {[]*taskqueuepb.PollerInfo{poller("1@other:1234", time.Second)}, true},
		"another profile on this host":   {[]*taskqueuepb.PollerInfo{poller(sendIdentity("host", "/profiles/b"), time.Second)}, true},
		"one without a process id":       {[]*taskqueuepb.PollerInfo{poller("somebody", time.Second)}, true},
		"one that has been gone a while": {[]*taskqueuepb.PollerInfo{poller("1@other:1234", pollerSilence+time.Second)}, false},
		"another beside this one":        {[]*taskqueuepb.PollerInfo{poller(own, 0), poller("1@other:1234", time.Minute)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.refused, otherSender(c.pollers, own, now) != nil)
		})
	}
}

func TestRevision(t *testing.T) {
	info := func(version string, settings ...string) *debug.BuildInfo {
		i := &debug.BuildInfo{Main: debug.Module{Version: version}}
		for n := 0; n+1 < len(settings); n += 2 {
			i.Settings = append(i.Settings, debug.BuildSetting{Key: settings[n], Value: settings[n+1]})
		}
		return i
	}
	require.Equal(t, "abc", revision(info("(devel)", "vcs.revision", "abc", "vcs.modified", "false")))
	require.Equal(t, "abc-dirty", revision(info("(devel)", "vcs.revision", "abc", "vcs.modified", "true")))
	require.Equal(t, "v1.2.3", revision(info("v1.2.3")))
	require.Empty(t, revision(info("(devel)")))
}

func TestDeployment(t *testing.T) {
	unversioned, err := Deployment{}.options()
	require.NoError(t, err)
	require.False(t, unversioned.UseVersioning)
	require.Equal(t, workflow.VersioningBehaviorUnspecified, behavior(unversioned))

	versioned, err := Deployment{Name: "steward", BuildID: "r1"}.options()
	require.NoError(t, err)
	require.True(t, versioned.UseVersioning)
	require.Equal(t, "steward", versioned.Version.DeploymentName)
	require.Equal(t, "r1", versioned.Version.BuildID)
	require.Equal(t, workflow.VersioningBehaviorAutoUpgrade, behavior(versioned))

	_, err = Deployment{BuildID: "r1"}.options()
	require.ErrorContains(t, err, "without a deployment name")
}

func TestRoles(t *testing.T) {
	roles, err := ParseRoles([]string{"run", " checks", "run"})
	require.NoError(t, err)
	require.Equal(t, []Role{RoleRun, RoleChecks}, roles)
	_, err = ParseRoles([]string{"recovery"})
	require.ErrorContains(t, err, `no role "recovery"`)
	_, err = ParseRoles(nil)
	require.Error(t, err)
}
