package recovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"time"

	"steward/activities/checks"
	"steward/activities/recovery/gate"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

// Codes of an HTTP check that did not pass.
const (
	codeNoAnswer = "no_answer"
	codeStatus   = "status"
	codeMatch    = "match"
)

// maxBody is how much of an answer is read, in bytes.
const maxBody = 1 << 20

// check proves one thing of a lane with the binary of its release.
func (r *Recovery) check(ctx context.Context, release Release, name string, c plan.Check) (evidence.Receipt, error) {
	return r.checkIn(ctx, release, name, c, "", "")
}

// checkIn is check in the folder of a source, keeping the output in a folder; both may be empty.
func (r *Recovery) checkIn(
	ctx context.Context, release Release, name string, c plan.Check, source, outputs string,
) (evidence.Receipt, error) {
	var receipt evidence.Receipt
	var err error
	if c.HTTP != nil {
		receipt = r.probe(ctx, release, *c.HTTP)
		err = context.Cause(ctx)
	} else {
		command := r.command(release, source, *c.Command)
		command.OutputDir = outputs
		receipt, err = command.Run(ctx)
		receipt.Runner = release.Tree
	}
	receipt.Gate, receipt.Revision, receipt.Release = name, release.Revision, release.Tree
	return receipt, err
}

// command is a command of a plan, run by the binary of the release.
func (r *Recovery) command(release Release, source string, c plan.Command) gate.Command {
	dir := release.Service.Home
	if source != "" {
		dir = source
	}
	return gate.Command{
		Argv: r.program(release, source, c.Argv), Dir: dir, Env: gate.Environment(c.Env), Timeout: c.Timeout.Std(),
	}
}

// errNoRunner is wrapped when a release has not the program of a check.
var errNoRunner = errors.New("the release has no such program")

// runner proves that the program of a check is in the release and executable.
func (r *Recovery) runner(release Release, c plan.Check) error {
	if c.Command == nil {
		return nil
	}
	program := r.program(release, "", c.Command.Argv)[0]
	info, err := os.Stat(program)
	if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
		err = errors.New("it is not executable")
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errNoRunner, c.Command.Argv[0], err)
	}
	return nil
}

// prober follows no redirect and shares no connection: a listener that is gone must not be remembered.
var prober = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// probe asks one address of a lane.
func (r *Recovery) probe(ctx context.Context, release Release, p plan.HTTP) evidence.Receipt {
	receipt := evidence.Receipt{Outcome: evidence.Inconclusive, Code: codeNoAnswer, At: time.Now().UTC()}
	ctx, cancel := context.WithTimeout(ctx, p.Timeout.Std())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.fill(release, "").Replace(p.URL), nil)
	if err != nil {
		receipt.Line = checks.TellingLine([]byte(err.Error()), false)
		return receipt
	}
	response, err := prober.Do(request)
	if err != nil {
		receipt.Line = checks.TellingLine([]byte(err.Error()), false)
		return receipt
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		receipt.Line = checks.TellingLine([]byte(err.Error()), false)
		return receipt
	}
	sum := sha256.Sum256(body)
	receipt.Digest = hex.EncodeToString(sum[:])
	receipt.Outcome, receipt.Code = judgeAnswer(p, response.StatusCode, body)
	receipt.Line = fmt.Sprintf("status %d", response.StatusCode)
	return receipt
}

func judgeAnswer(p plan.HTTP, status int, body []byte) (evidence.Outcome, string) {
	if status != *p.Status {
		return evidence.Failed, codeStatus
	}
	if p.Match == "" {
		return evidence.Passed, ""
	}
	match, err := regexp.Compile(p.Match)
	if err != nil || !match.Match(body) {
		return evidence.Failed, codeMatch
	}
	return evidence.Passed, ""
}

// verify is the one strict verification of a lane: it serves, and every check of its contract passes. The receipt is that of
// the first one that does not pass, else a passed one over all of them.
func (r *Recovery) verify(ctx context.Context, release Release, name, outputs string) (evidence.Receipt, error) {
	sum := sha256.New()
	all := append([]plan.Check{release.Service.Ready}, release.Service.Verify...)
	for n, c := range all {
		receipt, err := r.checkIn(ctx, release, name, c, "", outputs)
		if err != nil {
			return receipt, err
		}
		if receipt.Outcome != evidence.Passed {
			return receipt, nil
		}
		fmt.Fprintf(sum, "%d %s\n", n, receipt.Digest)
	}
	return evidence.Receipt{
		Gate: name, Outcome: evidence.Passed, Revision: release.Revision, Release: release.Tree, Runner: release.Tree,
		Digest: hex.EncodeToString(sum.Sum(nil)), Line: fmt.Sprintf("%d checks passed", len(all)), At: time.Now().UTC(),
	}, nil
}
