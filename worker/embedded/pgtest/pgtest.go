// Package pgtest runs a PostgreSQL server of its own for a test: on loopback, in a temporary folder, never as root.
package pgtest

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Password is that of User, the superuser of every server that Start runs.
const (
	User     = "steward"
	Password = "pgtest:secret/word"
)

// Start runs a server until the test ends and returns the address of a database on it, without the password. Without
// PostgreSQL on this machine it skips the test, and in CI (the variable CI is set) it fails.
func Start(t testing.TB, database string) string {
	t.Helper()
	bin, err := binaries()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "steward-pg-") // not t.TempDir: its parents belong to the user of the test alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	who, err := account(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := initialize(bin, dir, who); err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(who, filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data"), "-h", "127.0.0.1", "-p", strconv.Itoa(port),
		"-k", dir, "-c", "fsync=off", "-c", "log_min_messages=error")
	var failed strings.Builder
	cmd.Stderr = &failed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // SIGQUIT: no connection is waited for
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		_ = cmd.Wait()
	})
	address := fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s", User, port, database)
	if err := await(address); err != nil {
		t.Fatalf("PostgreSQL does not answer: %v\n%s", err, failed.String())
	}
	return address
}

// Open connects to a database of the server of address.
func Open(t testing.TB, address, database string) *sql.DB {
	t.Helper()
	db, err := open(address, database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func open(address, database string) (*sql.DB, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	u.User, u.Path, u.RawQuery = url.UserPassword(User, Password), "/"+database, "sslmode=disable"
	return sql.Open("postgres", u.String())
}

func await(address string) error {
	db, err := open(address, "postgres")
	if err != nil {
		return err
	}
	defer db.Close()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if err = db.Ping(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// binaries is the newest folder with initdb and postgres.
func binaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("PostgreSQL is not installed; on Debian: apt-get install postgresql")
	}
	newest := slices.MaxFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return filepath.Dir(newest), nil
}

// account is whom the server runs as: the caller, or for root the user postgres or nobody, who is given the folder.
func account(dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		who, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(who.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(who.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2, os.Chown(dir, int(uid), int(gid)))
}

func command(who *syscall.Credential, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	return cmd
}

func initialize(bin, dir string, who *syscall.Credential) error {
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte(Password), 0o600); err != nil {
		return err
	}
	if who != nil {
		if err := os.Chown(secret, int(who.Uid), int(who.Gid)); err != nil {
			return err
		}
	}
	output, err := command(who, filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", User, "--auth=scram-sha-256",
		"--pwfile="+secret, "--encoding=UTF8", "--no-sync").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, output)
	}
	return nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}
