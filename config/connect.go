package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
)

// Connection says how to reach a Temporal server.
type Connection struct {
	Options client.Options
	// Embedded: it is the embedded server of the data folder.
	Embedded bool
	// UI is the URL of the embedded server's Web UI; empty when unknown.
	UI string
}

// Connection is the Temporal server to use. What temporal.address and temporal.profile say comes first, then TEMPORAL_ADDRESS
// and TEMPORAL_PROFILE of the temporal CLI; without them the embedded server of the data folder, when one was ever started
// there; else the CLI's temporal.toml. It does not connect.
func (s Settings) Connection() (Connection, error) {
	if s.Temporal.Address == "" && s.Temporal.Profile == "" && os.Getenv("TEMPORAL_ADDRESS") == "" && os.Getenv("TEMPORAL_PROFILE") == "" {
		c, err := s.embedded()
		if !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
	}
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{
		ConfigFileProfile: s.Temporal.Profile, ConfigFileStrict: true,
	})
	if err != nil {
		return Connection{}, fmt.Errorf("connection profile of the temporal CLI: %w", err)
	}
	if s.Temporal.Address != "" {
		options.HostPort = s.Temporal.Address
	}
	if s.Temporal.Namespace != "" {
		options.Namespace = s.Temporal.Namespace
	}
	return Connection{Options: options}, nil
}

// embedded reads the file that the embedded server leaves in its data folder.
func (s Settings) embedded() (Connection, error) {
	path := filepath.Join(s.ServerDir(), "endpoint.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return Connection{}, fmt.Errorf("endpoint of the embedded server: %w", err)
	}
	var endpoint struct{ Address, Namespace, UI string }
	if err := json.Unmarshal(data, &endpoint); err != nil {
		return Connection{}, fmt.Errorf("%s: %w; start the server again, or set temporal.address", path, err)
	}
	if endpoint.Address == "" {
		return Connection{}, fmt.Errorf("%s: names no address; start the server again, or set temporal.address", path)
	}
	c := Connection{Embedded: true, UI: endpoint.UI}
	c.Options.HostPort, c.Options.Namespace = endpoint.Address, endpoint.Namespace
	if s.Temporal.Namespace != "" {
		c.Options.Namespace = s.Temporal.Namespace
	}
	return c, nil
}
