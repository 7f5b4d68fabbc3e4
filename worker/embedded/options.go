package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/searchattribute/sadefs"
)

// NoUI as Options.UIPort starts the server without the Web UI.
const NoUI = -1

// Options says where a server keeps its data and where it listens. The zero value of every field but DataDir is usable.
type Options struct {
	// DataDir holds everything the server keeps: temporal.db, lock, archive/, backup/ and endpoint.json. It is created
	// when missing and made private to its owner (0700).
	DataDir string
	// Postgres keeps the state on a PostgreSQL server instead of in DataDir: postgres://user@host:5432/database, without a
	// password in it when PGPASSWORD is set. The database and a second one, <database>_visibility, are created when they are
	// missing and the user may. Archive and endpoint stay in DataDir.
	Postgres string
	// Host is the loopback address of all listeners; default 127.0.0.1. Any other address is refused: nothing here
	// authenticates callers.
	Host string
	// Port is the gRPC port of the frontend. 0 takes the port of the last run of this data folder when it is free,
	// else any free one.
	Port int
	// UIPort is the HTTP port of the Web UI. 0 works as for Port; NoUI starts none.
	UIPort int
	// Namespace is created when missing; default "default".
	Namespace string
	// Logger takes the server's warnings and errors; its routine messages go to debug level. Default slog.Default().
	Logger *slog.Logger
	// SearchAttributes are the custom search attributes of the namespace. Missing ones are added at every start;
	// ones that exist beside them are kept.
	SearchAttributes map[string]enumspb.IndexedValueType

	postgres *postgres // parsed
}

// complete fills in the defaults and reports everything that is wrong with the options.
func (o Options) complete() (Options, error) {
	var problems []error
	if o.DataDir == "" {
		problems = append(problems, errors.New("data folder: missing"))
	} else if abs, err := filepath.Abs(o.DataDir); err != nil {
		problems = append(problems, fmt.Errorf("data folder %q: %w", o.DataDir, err))
	} else {
		o.DataDir = abs
	}
	if o.Postgres != "" {
		p, err := parsePostgres(o.Postgres)
		if err != nil {
			problems = append(problems, fmt.Errorf("PostgreSQL: %w", err))
		}
		o.postgres = &p
	}
	if o.Host == "" || o.Host == "localhost" {
		o.Host = "127.0.0.1"
	}
	if ip := net.ParseIP(o.Host); ip == nil || !ip.IsLoopback() {
		problems = append(problems, fmt.Errorf("host %q: not a loopback address; the server authenticates nobody, use 127.0.0.1", o.Host))
	}
	if o.Port < 0 || o.Port > 65535 {
		problems = append(problems, fmt.Errorf("port %d: not between 0 and 65535", o.Port))
	}
	if o.UIPort < NoUI || o.UIPort > 65535 {
		problems = append(problems, fmt.Errorf("UI port %d: not between 0 and 65535, or %d for none", o.UIPort, NoUI))
	}
	if o.Port != 0 && o.Port == o.UIPort {
		problems = append(problems, fmt.Errorf("port and UI port are both %d", o.Port))
	}
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	if o.Namespace == primitives.SystemLocalNamespace {
		problems = append(problems, fmt.Errorf("namespace %q belongs to the server itself", o.Namespace))
	}
	for name := range o.SearchAttributes {
		if name == "" || sadefs.IsReserved(name) {
			problems = append(problems, fmt.Errorf("search attribute %q: the name is reserved by the server", name))
		}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, errors.Join(problems...)
}
