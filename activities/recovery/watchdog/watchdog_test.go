package watchdog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var begin = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// play gives one look per second: h healthy, r not ready, d not running and not listening, u unknown. The answer has one
// letter per look: R restart, B rollback, S stop.
func play(p Policy, looks string, rollbackTo bool) string {
	var s State
	var actions strings.Builder
	for i, look := range looks {
		l := Look{At: begin.Add(time.Duration(i) * time.Second), RollbackTo: rollbackTo}
		switch look {
		case 'r':
			l.Evidence = []string{NotReady}
		case 'd':
			l.Evidence = []string{NotRunning, NotListening}
		case 'u':
			l.Unknown = true
		}
		var action Action
		s, action = p.Decide(s, l)
		letter := map[Action]string{Nothing: ".", Restart: "R", Rollback: "B", Stop: "S"}[action]
		actions.WriteString(letter)
	}
	return actions.String()
}

func TestDecisions(t *testing.T) {
	dots := func(n int) string { return strings.Repeat(".", n) }
	restarts := dots(5) + "R" + dots(9) + "R" + dots(9) + "R" // at 5, 15 and 25 s
	tests := []struct {
		name, looks string
		rollbackTo  bool
		want        string
	}{
		{"one bad look", "hrhrhr", true, dots(6)},
		{"restart after 5 s", "rrrrrr", true, dots(5) + "R"},
		{"unknown proves nothing", "rrruuuuuuuu", true, dots(11)},
		{"rollback after all restarts", strings.Repeat("d", 60), true, restarts + dots(9) + "B" + "S" + dots(23)},
		{"one kind of evidence is not enough", strings.Repeat("r", 40), true, restarts + dots(9) + "S" + dots(4)},
		{"nowhere to go back to", strings.Repeat("d", 40), false, restarts + dots(9) + "S" + dots(4)},
	}
	for _, test := range tests {
		if got := play(Default, test.looks, test.rollbackTo); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

func TestRestartsComeBackAfterFiveHealthyMinutes(t *testing.T) {
	bad := strings.Repeat("d", 26)
	for healthy, restarts := range map[int]int{299: 3, 301: 6} {
		got := play(Default, bad+strings.Repeat("h", healthy)+bad, false)
		if n := strings.Count(got, "R"); n != restarts {
			t.Errorf("%d healthy seconds give %d restarts in all, want %d", healthy, n, restarts)
		}
	}
}

func TestBoundsHoldForEveryHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		looks := rapid.StringOfN(rapid.RuneFrom([]rune("hrdu")), 0, 400, -1).Draw(t, "looks")
		got := play(Default, looks, rapid.Bool().Draw(t, "rollbackTo"))
		if n := strings.Count(got, "B"); n > 1 {
			t.Fatalf("%d rollbacks", n)
		}
		if !strings.Contains(looks, strings.Repeat("h", 290)) && strings.Count(got, "R") > Default.Restarts {
			t.Fatalf("%d restarts without five healthy minutes", strings.Count(got, "R"))
		}
		for i, action := range got {
			if (looks[i] == 'h' || looks[i] == 'u') && action != '.' {
				t.Fatal(fmt.Sprintf("look %d (%c) led to %c", i, looks[i], action))
			}
		}
	})
}
