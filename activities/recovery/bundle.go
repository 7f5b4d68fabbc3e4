package recovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"steward/activities"
	"steward/activities/recovery/database"
	"steward/activities/recovery/durable"
	"steward/activities/recovery/home"
)

// Bundle is a known-good bundle: a release, a snapshot of its database and its service contract, which hold only together.
// It is named by the release, so that one release has one bundle.
// (Stable A / Candidate B and ReleaseSession authority, Recovery bundle and known-good.)
type Bundle struct {
	Schema  int     `json:"schema"`
	ID      string  `json:"id"`
	Session string  `json:"session"`
	Release Release `json:"release"`
	// Contract is the SHA-256 of the service contract's file.
	Contract string           `json:"contract"`
	Database *database.Backup `json:"database,omitempty"`
	At       time.Time        `json:"at"`
}

const (
	bundleSchema   = 2
	bundleRecord   = "bundle.json"
	bundleContract = "service.json"
	bundleDatabase = "database.db"
	bundlePart     = ".part-"
)

// errBundle is wrapped when a bundle is not whole; it protects nothing and nothing is brought back from it.
var errBundle = errors.New("the known-good bundle is not whole")

// attest makes the bundle of a release whole and then says in its home that the release is known-good.
func (r *Recovery) attest(ctx context.Context, i instance, session string, release Release) (Bundle, error) {
	b, err := r.wholeBundle(ctx, i, session, release)
	if err != nil {
		return b, err
	}
	return b, home.MarkKnownGood(release.Service.Home, release.Tree)
}

// wholeBundle writes the bundle of a release, publishes it at once and reads it back. A whole one that is there stays.
func (r *Recovery) wholeBundle(ctx context.Context, i instance, session string, release Release) (Bundle, error) {
	if b, err := r.validate(ctx, i, release.Tree); err == nil {
		return b, nil
	}
	if err := errors.Join(durable.MkdirAll(i.bundles()), r.removeOrphans(i)); err != nil {
		return Bundle{}, err
	}
	part, err := os.MkdirTemp(i.bundles(), bundlePart)
	if err != nil {
		return Bundle{}, err
	}
	defer os.RemoveAll(part)
	if err := r.fillBundle(ctx, part, session, release); err != nil {
		return Bundle{}, err
	}
	target := filepath.Join(i.bundles(), release.Tree)
	if err := os.RemoveAll(target); err != nil { // one that did not validate
		return Bundle{}, err
	}
	if err := errors.Join(os.Rename(part, target), durable.SyncDir(i.bundles())); err != nil {
		return Bundle{}, err
	}
	return r.validate(ctx, i, release.Tree)
}

// fillBundle writes everything that belongs to a bundle.
func (r *Recovery) fillBundle(ctx context.Context, dir, session string, release Release) error {
	if err := r.store.Verify(release.Tree); err != nil {
		return err
	}
	b := Bundle{Schema: bundleSchema, ID: release.Tree, Session: session, Release: release, At: time.Now().UTC()}
	if err := durable.WriteJSON(filepath.Join(dir, bundleContract), release.Service); err != nil {
		return err
	}
	var err error
	if b.Contract, err = digestOf(filepath.Join(dir, bundleContract)); err != nil {
		return err
	}
	if b.Database, err = snapshotTo(ctx, release.Service, filepath.Join(dir, bundleDatabase)); err != nil {
		return err
	}
	if b.Database != nil {
		b.Database.File = bundleDatabase
	}
	if err := durable.WriteJSON(filepath.Join(dir, bundleRecord), b); err != nil {
		return err
	}
	return durable.SyncTree(dir)
}

// validate reads a bundle from the disk and proves that it is whole: release, database and contract.
func (r *Recovery) validate(ctx context.Context, i instance, id string) (Bundle, error) {
	var b Bundle
	dir := filepath.Join(i.bundles(), id)
	if err := durable.ReadJSON(filepath.Join(dir, bundleRecord), &b); err != nil {
		return b, fmt.Errorf("%w: %w", errBundle, err)
	}
	if b.Schema != bundleSchema || b.ID != id || b.Release.Tree != id {
		return b, fmt.Errorf("%w: %s is schema %d of release %.12s", errBundle, dir, b.Schema, b.Release.Tree)
	}
	contract, err := digestOf(filepath.Join(dir, bundleContract))
	if err == nil && contract != b.Contract {
		err = fmt.Errorf("the service contract has another hash than the record says")
	}
	if err == nil && (b.Database == nil) != (b.Release.Service.Database == nil) {
		err = errors.New("the snapshot of the database is missing")
	}
	if err == nil && b.Database != nil {
		on := *b.Database
		on.File = filepath.Join(dir, bundleDatabase)
		err = on.Check(ctx)
	}
	if err == nil {
		err = r.store.Verify(b.Release.Tree)
	}
	if err != nil {
		return b, fmt.Errorf("%w: %s: %w", errBundle, dir, err)
	}
	return b, nil
}

// Bundles are the whole bundles of an instance, the newest first.
func (r *Recovery) Bundles(ctx context.Context, name string) ([]Bundle, error) {
	i := r.instance(name)
	entries, err := os.ReadDir(i.bundles())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var whole []Bundle
	for _, entry := range entries {
		if b, err := r.validate(ctx, i, entry.Name()); err == nil {
			whole = append(whole, b)
		}
	}
	slices.SortFunc(whole, func(a, b Bundle) int { return b.At.Compare(a.At) })
	return whole, err
}

// removeOrphans removes what a crash left of bundles that were never published.
func (r *Recovery) removeOrphans(i instance) error {
	entries, err := os.ReadDir(i.bundles())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), bundlePart) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(i.bundles(), entry.Name())))
		}
	}
	return err
}

func digestOf(path string) (string, error) {
	data, err := os.ReadFile(path)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), err
}

// Bundle makes the known-good bundle of the active release.
func (r *Recovery) Bundle(ctx context.Context, in activities.BundleInput) (activities.BundleResult, error) {
	i, result := r.instance(in.Plan.Instance), activities.BundleResult{Worker: r.Worker}
	authority, err := i.authority()
	if err == nil && authority.Active.Tree != in.Release {
		err = fmt.Errorf("%w: release %.12s is active, not %.12s", ErrAuthority, authority.Active.Tree, in.Release)
	}
	if err != nil {
		result.Failed, err = definite(err)
		return result, err
	}
	b, err := r.attest(ctx, i, in.Session, authority.Active)
	if err != nil {
		result.Failed, err = definite(err)
		return result, err
	}
	record, err := json.Marshal(b)
	if err != nil {
		return result, err
	}
	sum := sha256.Sum256(record)
	result.ID, result.Release, result.Digest, result.Validated = b.ID, b.Release.Tree, hex.EncodeToString(sum[:]), true
	if b.Database != nil {
		result.Database = b.Database.SHA256
	}
	result.Lane = r.look(ctx, i, in.Session)
	return result, nil
}
