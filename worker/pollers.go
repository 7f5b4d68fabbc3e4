package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"

	"steward/workflows"
)

// pollerSilence is how long a poller that is not seen any more counts as alive: a long poll lasts up to 70 s, and the
// one-slot worker does not poll while it sends.
const pollerSilence = 2 * time.Minute

// sendIdentity names the worker of one browser to the server. All of it but the process id stays the same over restarts,
// so that a worker recognises its own dead predecessor.
func sendIdentity(host, profileDir string) string {
	sum := sha256.Sum256([]byte(profileDir))
	return fmt.Sprintf("%d@%s:%s", os.Getpid(), host, hex.EncodeToString(sum[:4]))
}

// refuseSecondSender fails when another worker than this one (or its dead predecessor) polls the send queue of a
// browser: two workers behind one login could both be sending.
func refuseSecondSender(ctx context.Context, c client.Client, browser, identity string) error {
	queue := workflows.QueueSend(browser)
	described, err := c.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil {
		return fmt.Errorf("task queue %s: %w", queue, err)
	}
	other := otherSender(described.GetPollers(), identity, time.Now())
	if other == nil {
		return nil
	}
	seen := time.Since(other.GetLastAccessTime().AsTime()).Round(time.Second)
	return fmt.Errorf("task queue %s is polled by %s, last seen %v ago: one login has one worker. "+
		"Stop that one, or wait until it has been gone for %v, or give this login another name than %q",
		queue, other.GetIdentity(), seen, pollerSilence, browser)
}

// Polled names the workers that poll a task queue.
func Polled(ctx context.Context, c client.Client, queue string, kind enumspb.TaskQueueType) ([]string, error) {
	described, err := c.DescribeTaskQueue(ctx, queue, kind)
	if err != nil {
		return nil, fmt.Errorf("task queue %s: %w", queue, err)
	}
	var identities []string
	for _, p := range described.GetPollers() {
		if time.Since(p.GetLastAccessTime().AsTime()) < pollerSilence {
			identities = append(identities, p.GetIdentity())
		}
	}
	return identities, nil
}

func otherSender(pollers []*taskqueuepb.PollerInfo, identity string, now time.Time) *taskqueuepb.PollerInfo {
	for _, p := range pollers {
		alive := now.Sub(p.GetLastAccessTime().AsTime()) < pollerSilence
		if alive && home(p.GetIdentity()) != home(identity) {
			return p
		}
	}
	return nil
}

// home is an identity without its process id.
func home(identity string) string {
	_, rest, found := strings.Cut(identity, "@")
	if !found {
		return identity
	}
	return rest
}
