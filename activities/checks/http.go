package checks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"

	"steward/activities"
	"steward/workflows/run/goal"
)

const (
	maxBody      = 1 << 20 // bytes of an answer that are read and kept
	maxRedirects = 5
)

var (
	errRedirect    = errors.New("redirect refused")
	errNotLoopback = errors.New("the name does not lead to this machine")
)

// http asks the address of a check once.
func (c *Checks) http(ctx context.Context, check goal.HTTP, e *evidence) {
	limited, cancel := context.WithTimeout(ctx, check.Timeout.Std())
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodGet, check.URL, nil)
	if err != nil {
		e.cannotTell(activities.CheckCannotRun, "%v", err)
		return
	}
	client := client(request.URL, *check.Status)
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		c.unanswered(ctx, check, err, e)
		return
	}
	defer response.Body.Close()
	var body output
	if _, err := io.Copy(&body, io.LimitReader(response.Body, maxBody)); err != nil {
		c.unanswered(ctx, check, err, e)
		return
	}
	e.Status = &response.StatusCode
	if response.StatusCode != *check.Status {
		e.fail(activities.CheckStatusMismatch, "status %d, not %d: %s", response.StatusCode, *check.Status, tellingLine(body.kept(), true))
	} else {
		e.pass(fmt.Sprintf("status %d: %s", response.StatusCode, tellingLine(body.kept(), false)))
	}
	c.keepOutput(&body, e)
}

func (c *Checks) unanswered(ctx context.Context, check goal.HTTP, err error, e *evidence) {
	var dns *net.DNSError
	switch {
	case ctx.Err() != nil: // the activity ends; Run says so
	case errors.Is(err, context.DeadlineExceeded):
		e.fail(activities.CheckTimedOut, "no answer within %v", *check.Timeout)
	case errors.Is(err, errRedirect):
		e.fail(activities.CheckRedirectRefused, "%v", cause(err))
	case errors.Is(err, errNotLoopback):
		e.cannotTell(activities.CheckRefused, "%v", cause(err))
	case errors.As(err, &dns):
		e.cannotTell(activities.CheckCannotRun, "%v", dns)
	default:
		e.fail(activities.CheckUnreachable, "%v", cause(err))
	}
}

// cause leaves out the address, which may carry a query.
func cause(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// client makes requests without a proxy, cookies or kept connections. A name that stands for loopback must lead there, and
// redirects stay on the host; they are not followed at all when a redirect is the expected answer.
func client(address *url.URL, expected int) *http.Client {
	dialer := &net.Dialer{Control: func(_, to string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(to)
		if goal.IsLoopback(address.Hostname()) && (err != nil || !at.Addr().Unmap().IsLoopback()) {
			return errNotLoopback
		}
		return nil
	}}
	return &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext},
		CheckRedirect: func(to *http.Request, via []*http.Request) error {
			switch {
			case expected >= 300 && expected < 400:
				return http.ErrUseLastResponse
			case to.URL.Scheme != address.Scheme || to.URL.Host != address.Host:
				return fmt.Errorf("%w: it leads to %s", errRedirect, to.URL.Host)
			case len(via) > maxRedirects:
				return fmt.Errorf("%w: more than %d in a row", errRedirect, maxRedirects)
			}
			return nil
		},
	}
}
