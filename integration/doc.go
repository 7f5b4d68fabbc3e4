// Package integration tests the real thing: the steward binary with its embedded Temporal server, a real Chromium, and the
// fixture chat site in chatlab as ground truth of what was sent.
package integration
