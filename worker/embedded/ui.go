package embedded

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/labstack/echo/v4"
	uiserver "github.com/temporalio/ui-server/v2/server"
	"github.com/temporalio/ui-server/v2/server/api"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/server_options"
)

func (s *Server) startUI(o Options, port int) {
	host := o.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]" // the UI joins host and port as they are
	}
	s.endpoint.UI = "http://" + hostPort(o.Host, port)
	s.ui = uiserver.NewServer(
		server_options.WithConfigProvider(&uiconfig.Config{
			Host:                host,
			Port:                port,
			TemporalGRPCAddress: s.endpoint.Address,
			EnableUI:            true,
			DefaultNamespace:    o.Namespace,
			CORS:                uiconfig.CORS{CookieInsecure: true}, // plain HTTP on loopback
			DisableNewsFetch:    true,
			HideLogs:            true,
		}),
		server_options.WithAPIMiddleware([]api.Middleware{func(echo.Context) runtime.ServeMuxOption {
			return runtime.WithMiddlewares(loopbackHostOnly)
		}}),
	)
	s.uiDone = make(chan struct{})
	go func() {
		defer close(s.uiDone)
		if err := s.ui.Start(); err != nil {
			o.Logger.Error("the Web UI has ended", "error", err)
		}
	}()
}

func (s *Server) awaitUI(ctx context.Context) error {
	return await(ctx, "Web UI "+s.endpoint.UI, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.endpoint.UI+"/healthz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("/healthz answers %s", resp.Status)
		}
		return nil
	})
}

// loopbackHostOnly refuses API requests for a name that is not of this machine: a web page whose name was pointed at
// 127.0.0.1 after it was loaded could otherwise start workflows.
func loopbackHostOnly(next runtime.HandlerFunc) runtime.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request, params map[string]string) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if host != "localhost" && !net.ParseIP(strings.Trim(host, "[]")).IsLoopback() {
			http.Error(w, "open the Web UI by its loopback address", http.StatusForbidden)
			return
		}
		next(w, r, params)
	}
}
