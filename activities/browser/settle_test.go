package browser

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/config/sites"
)

func testSite() *sites.Site {
	return &sites.Site{
		Settle: sites.Settle{
			Looks: 3, Stable: 1200 * time.Millisecond, Extra: 4 * time.Second, DriftAfter: 30 * time.Second, ReloadAfter: 60 * time.Second,
		},
		Timings: sites.Timings{Look: 500 * time.Millisecond, LookMax: 5 * time.Second},
		States:  []sites.State{{Name: "turn_error", Class: "turn_error", Kind: sites.Failed}},
	}
}

// done is a look at a turn that bears its finish marks.
func done(signature string) look {
	a := answer{Present: true, ID: "t1", Signature: signature, Finished: true}
	return look{Ready: true, Found: true, Answer: a, LastAnswer: a}
}

func with(l look, change func(*look)) look {
	change(&l)
	return l
}

// at is one look at a time after the first.
type at struct {
	after time.Duration
	look  look
	want  stage
}

const s, msec = time.Second, time.Millisecond

func TestTheSettleRule(t *testing.T) {
	busy := with(done("a"), func(l *look) { l.Answer.Busy, l.Answer.Finished = true, false })
	stop := with(done("a"), func(l *look) { l.Stop = true })
	quiet := with(done("a"), func(l *look) { l.Answer.Finished = false })
	nothing := look{Ready: true, Found: true}
	failed := with(quiet, func(l *look) { l.States = append(l.States, seen{"turn_error", "Something went wrong"}) })
	foreign := with(quiet, func(l *look) { l.Later, l.LastAnswer = 1, answer{Present: true, Signature: "x", Finished: true} })
	foreignBusy := with(foreign, func(l *look) { l.Stop, l.LastAnswer.Finished = true, false })
	finishedThenForeign := with(done("a"), func(l *look) { l.Later, l.Stop = 1, true })

	for name, looks := range map[string][]at{
		"three looks over the stable time": {
			{0, done("a"), stageLikely}, {600 * msec, done("a"), stageLikely}, {1200 * msec, done("a"), stageFinished},
		},
		"three quick looks are not enough": {
			{0, done("a"), stageLikely}, {100 * msec, done("a"), stageLikely}, {200 * msec, done("a"), stageLikely},
		},
		"two looks far apart are not enough": {{0, done("a"), stageLikely}, {5 * s, done("a"), stageLikely}},
		"a change begins anew": {
			{0, done("a"), stageLikely},
			{600 * msec, done("a"), stageLikely},
			{1200 * msec, done("ab"), stageLikely},
			{1800 * msec, done("ab"), stageLikely},
			{2400 * msec, done("ab"), stageFinished},
		},
		"a stop control, or a busy turn, is not finished": {
			{0, stop, stageOpen}, {s, stop, stageOpen}, {2 * s, stop, stageOpen}, {3 * s, busy, stageOpen}, {9 * s, busy, stageOpen},
		},
		"a quiet turn without marks is drift, after one reload": {
			{0, quiet, stageOpen}, {29 * s, quiet, stageOpen}, {30 * s, quiet, stageStuck}, {31 * s, quiet, stageDrift},
		},
		"no answer at all is never drift, but loaded again, ever less often": {
			{0, nothing, stageOpen},
			{59 * s, nothing, stageOpen},
			{60 * s, nothing, stageStuck},
			{61 * s, nothing, stageOpen},
			{119 * s, nothing, stageOpen},
			{120 * s, nothing, stageStuck},
		},
		"a failure must last": {
			{0, failed, stageLikely}, {2 * s, failed, stageLikely}, {5200 * msec, failed, stageFailed},
		},
		"a failure that the page mends itself": {
			{0, failed, stageLikely}, {2 * s, failed, stageLikely}, {3 * s, busy, stageOpen}, {4 * s, done("b"), stageLikely},
		},
		"somebody else's turn is waited for": {
			{0, foreignBusy, stageOpen},
			{4 * s, foreignBusy, stageOpen},
			{5 * s, foreign, stageLikely},
			{6 * s, foreign, stageLikely},
			{10200 * msec, foreign, stageMoved},
		},
		"our finished turn settles whatever follows it": {
			{0, finishedThenForeign, stageLikely}, {s, finishedThenForeign, stageLikely}, {2 * s, finishedThenForeign, stageFinished},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch{site: testSite()}
			began := time.Now()
			for i, a := range looks {
				got, _ := w.see(a.look, began.Add(a.after))
				require.Equal(t, a.want, got, "look %d at %s", i, a.after)
			}
		})
	}
}

func TestLooksAreCloseWhenATurnIsAboutToSettleAndRareWhenItIsQuiet(t *testing.T) {
	w := watch{site: testSite()}
	require.Equal(t, 500*msec, w.wait(stageLikely, 0))
	require.Equal(t, 500*msec, w.wait(stageOpen, 0))
	require.Equal(t, 2*s, w.wait(stageOpen, 40*s))
	require.Equal(t, 5*s, w.wait(stageOpen, 10*time.Minute))
}
