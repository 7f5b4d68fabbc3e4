// Package embedded runs a Temporal server inside the process: all services, SQLite in one private folder or a PostgreSQL
// server, the Web UI, and nothing but loopback listeners. Its state survives a killed process and a power cut.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	uiserver "github.com/temporalio/ui-server/v2/server"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/temporal"
)

const (
	// readyTimeout bounds the wait for a started server to answer; it takes about a second on a busy machine.
	readyTimeout  = time.Minute
	readyInterval = 20 * time.Millisecond
)

// Server is a running Temporal server. Stop ends it.
type Server struct {
	dataDir  string
	endpoint Endpoint
	log      serverLogger

	lock     *os.File
	postgres *databaseLock // nil on SQLite
	temporal temporal.Server
	ui       *uiserver.Server
	uiDone   chan struct{}

	stop    sync.Once
	stopErr error
}

// Start runs a server on o.DataDir and returns when frontend and Web UI answer. Errors wrap ErrInUse when another
// process runs a server there, and ErrNewerSchema when a newer release has written its database.
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.complete()
	if err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	s := &Server{dataDir: o.DataDir, log: newServerLogger(o.Logger)}
	if err := s.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("embedded server: %w", err), s.Stop())
	}
	return s, nil
}

// Address is host:port of the gRPC frontend.
func (s *Server) Address() string { return s.endpoint.Address }

// UI is the URL of the Web UI; empty without one.
func (s *Server) UI() string { return s.endpoint.UI }

// Namespace is the namespace that the server was started with.
func (s *Server) Namespace() string { return s.endpoint.Namespace }

// Lost tells when another server has taken this one's database, which has to be stopped then. The error wraps ErrInUse. That can
// happen on PostgreSQL only, after the connection to it was lost.
func (s *Server) Lost() <-chan error {
	if s.postgres == nil {
		return nil
	}
	return s.postgres.lost
}

// Stop ends the Web UI, then the server, and gives the data folder free. Workers and clients in the same process have to
// be stopped before. Later calls return the result of the first.
func (s *Server) Stop() error {
	s.stop.Do(func() { s.stopErr = s.shutDown() })
	return s.stopErr
}

func (s *Server) start(ctx context.Context, o Options) (err error) {
	if err := makePrivate(o.DataDir); err != nil {
		return err
	}
	if s.lock, err = lockDir(o.DataDir); err != nil {
		return err
	}
	if o.postgres != nil {
		s.postgres, err = preparePostgres(ctx, *o.postgres, o.Logger)
	} else {
		err = prepareDatabase(ctx, o.DataDir, o.Logger)
	}
	if err != nil {
		return err
	}
	if err := ensureNamespace(ctx, o); err != nil {
		return err
	}
	last, err := ReadEndpoint(o.DataDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		o.Logger.Warn("the ports of the last run are unknown", "error", err)
	}
	p, err := choosePorts(o, last)
	if err != nil {
		return err
	}
	s.endpoint = Endpoint{
		Address: hostPort(o.Host, p.frontend), Namespace: o.Namespace, PID: os.Getpid(), StartedAt: time.Now().UTC(),
	}
	if err := s.startTemporal(o, p); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := s.awaitFrontend(ctx); err != nil {
		return err
	}
	if p.ui != 0 {
		s.startUI(o, p.ui)
		if err := s.awaitUI(ctx); err != nil {
			return err
		}
	}
	return s.endpoint.write(o.DataDir)
}

func (s *Server) startTemporal(o Options, p ports) error {
	cfg := serverConfig(o, p)
	server, err := temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(staticHosts(o.Host, p)),
		temporal.WithDynamicConfigClient(dynamicConfig()),
		temporal.WithLogger(s.log),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }),
	)
	if err != nil {
		return fmt.Errorf("configure the Temporal server: %w", err)
	}
	s.temporal = server
	if err := server.Start(); err != nil {
		return fmt.Errorf("start the Temporal server: %w", err)
	}
	return nil
}

// awaitFrontend returns when the frontend serves the namespace.
func (s *Server) awaitFrontend(ctx context.Context) error {
	c, err := client.NewLazyClient(client.Options{
		HostPort:  s.endpoint.Address,
		Namespace: s.endpoint.Namespace,
		Logger:    sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return err
	}
	defer c.Close()
	return await(ctx, "frontend "+s.endpoint.Address, func(ctx context.Context) error {
		if _, err := c.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
			return err
		}
		_, err := c.WorkflowService().DescribeNamespace(ctx,
			&workflowservice.DescribeNamespaceRequest{Namespace: s.endpoint.Namespace})
		return err
	})
}

// await repeats probe until it succeeds or ctx ends.
func await(ctx context.Context, what string, probe func(context.Context) error) error {
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready (%w): %w", what, context.Cause(ctx), err)
		case <-time.After(readyInterval):
		}
	}
}

// shutDown also ends what a failed start has left running.
func (s *Server) shutDown() error {
	var errs []error
	s.log.stopping.Store(true)
	if s.ui != nil {
		s.ui.Stop()
		<-s.uiDone
	}
	if s.temporal != nil {
		errs = append(errs, s.temporal.Stop())
		if s.postgres == nil {
			errs = append(errs, checkpoint(context.Background(), s.dataDir))
		}
	}
	if s.postgres != nil {
		errs = append(errs, s.postgres.release())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the embedded server: %w", err)
	}
	return nil
}

// makePrivate creates dir, or takes the rights of others away from an existing one.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	return nil
}
