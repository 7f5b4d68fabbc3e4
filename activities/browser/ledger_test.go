package browser

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheLedgerRefusesWhatItHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l, err := openLedger(path)
	require.NoError(t, err)
	first := attempt{Effect: "fx_1", Generation: 1, At: now()}
	require.NoError(t, l.append(first))
	require.ErrorIs(t, l.append(first), errLedgered)
	require.NoError(t, l.append(attempt{Effect: "fx_1", Generation: 2, At: now()}))
	require.NoError(t, l.close())

	again, err := openLedger(path)
	require.NoError(t, err)
	defer again.close()
	require.ErrorIs(t, again.append(first), errLedgered)
	require.True(t, again.holds("fx_1"))
	require.False(t, again.holds("fx_2"))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestATornLastLineNeverArmed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	torn := `{"effect":"fx_1","generation":1,"at":"2026-11-01T00:00:00Z"}` + "\n" + `{"effect":"fx_2","gen`
	require.NoError(t, os.WriteFile(path, []byte(torn), 0o600))
	l, err := openLedger(path)
	require.NoError(t, err)
	require.NoError(t, l.append(attempt{Effect: "fx_2", Generation: 1, At: now()}))
	require.NoError(t, l.close())
	l, err = openLedger(path)
	require.NoError(t, err)
	defer l.close()
	require.True(t, l.holds("fx_1"))
	require.True(t, l.holds("fx_2"))
}

func TestADamagedLedgerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	require.NoError(t, os.WriteFile(path, []byte("nonsense\n"), 0o600))
	_, err := openLedger(path)
	require.ErrorContains(t, err, "line 1")
}

func TestALedgerThatCannotBeWrittenRefuses(t *testing.T) {
	l, err := openLedger(filepath.Join(t.TempDir(), "ledger"))
	require.NoError(t, err)
	require.NoError(t, l.close())
	require.Error(t, l.append(attempt{Effect: "fx_1", Generation: 1}))
	require.ErrorIs(t, l.append(attempt{Effect: "fx_1", Generation: 1}), errLedgered, "how much reached the disk is not known")
}

func TestTheRestOfABrowserOutlivesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rest.json")
	r, err := openRest(path)
	require.NoError(t, err)
	at := now()
	require.False(t, r.until(5*time.Second, at).After(at))
	require.NoError(t, r.sent(at))
	r, err = openRest(path)
	require.NoError(t, err)
	require.WithinDuration(t, at.Add(5*time.Second), r.until(5*time.Second, at), time.Millisecond)
	require.NoError(t, r.cool(at.Add(time.Minute)))
	require.WithinDuration(t, at.Add(time.Minute), r.until(5*time.Second, at), time.Millisecond)
	early := at.Add(-time.Hour)
	require.NoError(t, r.cool(time.Time{}))
	require.False(t, r.until(5*time.Second, early).After(early), "a clock that was set back does not make the browser wait")
}
