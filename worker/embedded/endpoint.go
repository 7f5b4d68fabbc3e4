package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const endpointFile = "endpoint.json"

// Endpoint says how to reach the server of a data folder. The file stays after a stop, so it names the server that runs
// or the last one that ran.
type Endpoint struct {
	// Address is host:port of the gRPC frontend.
	Address string `json:"address"`
	// UI is the URL of the Web UI; empty without one.
	UI        string    `json:"ui,omitempty"`
	Namespace string    `json:"namespace"`
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
}

// ReadEndpoint reads the endpoint of the server that runs, or last ran, on dataDir. The error wraps fs.ErrNotExist when
// none ever did.
func ReadEndpoint(dataDir string) (Endpoint, error) {
	var e Endpoint
	path := filepath.Join(dataDir, endpointFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return e, fmt.Errorf("endpoint of the embedded server: %w", err)
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("endpoint of the embedded server: %s: %w", path, err)
	}
	return e, nil
}

func (e Endpoint) write(dataDir string) error {
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	return writeFileAtomically(filepath.Join(dataDir, endpointFile), append(data, '\n'))
}

// writeFileAtomically replaces path so that a reader, or a machine that loses power, sees the old content or the new.
func writeFileAtomically(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(tmp.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
