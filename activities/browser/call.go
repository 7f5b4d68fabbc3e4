package browser

import (
	"errors"
	"sync/atomic"
	"time"
)

var calls atomic.Int64

// Calls is how many calls into browsers this process has made.
func Calls() int64 { return calls.Load() }

// errHung is returned for a call into the browser that did not come back within its bound.
var errHung = errors.New("the browser did not answer in time")

// within bounds a call into Playwright, which takes no context. A call that hangs stays behind until what it waits for is
// closed: whoever gets errHung closes it before the next send.
func within[T any](limit time.Duration, call func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	calls.Add(1)
	done := make(chan answer, 1)
	go func() {
		value, err := call()
		done <- answer{value, err}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case a := <-done:
		return a.value, a.err
	case <-timer.C:
		var none T
		return none, errHung
	}
}

// do is within for a call without a value.
func do(limit time.Duration, call func() error) error {
	_, err := within(limit, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// ms is a duration as Playwright takes it.
func ms(d time.Duration) *float64 {
	value := float64(d) / float64(time.Millisecond)
	return &value
}
