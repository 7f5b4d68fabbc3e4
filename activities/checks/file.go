package checks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"steward/activities"
	"steward/workflows/run/goal"
)

// maxText is how much of a file the rules contains, run_id and total look into. A longer file cannot be told by them.
const maxText = 16 << 20

// expectation is what the contract and the run know beside the file's own rules.
type expectation struct {
	runIDs    []string
	artifacts []string // paths of all evidence files: no sources, so fresh_for does not look at them
	baseline  int64
	known     bool // a baseline was taken
}

// content is a file as it was read.
type content struct {
	info   fs.FileInfo
	digest string
	text   []byte // at most maxText
	whole  bool   // text is all of it
}

var (
	errNoFile  = errors.New("is no regular file")
	errChanged = errors.New("changed while it was read")
)

// file checks the file of a check, rule by rule; the first that does not hold decides.
func (c *Checks) file(ctx context.Context, file goal.File, want expectation, e *evidence) {
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	_, statErr := c.lstat(file.Path)
	absent := errors.Is(statErr, fs.ErrNotExist)
	switch {
	case !absent && statErr != nil:
		e.cannotTell(activities.CheckCannotRead, "%v", statErr)
		return
	case !*file.Exists && absent:
		e.pass("nothing is there")
		return
	case !*file.Exists:
		e.fail(activities.CheckStillExists, "%s is still there", file.Path)
		return
	case absent:
		e.fail(activities.CheckNotFound, "%s is not there", file.Path)
		return
	}
	read, err := c.read(ctx, file.Path)
	switch {
	case errors.Is(err, errNoFile) && file.Contains+file.SHA256+file.FreshFor+file.RunID+file.Total == "":
		e.pass("is there")
	case errors.Is(err, errNoFile):
		e.fail(activities.CheckNotAFile, "%s %v", file.Path, err)
	case errors.Is(err, errChanged):
		e.cannotTell(activities.CheckChangedMeanwhile, "%s %v", file.Path, err)
	case err != nil:
		e.cannotTell(activities.CheckCannotRead, "%v", err)
	default:
		e.Digest, e.Bytes, e.Revision = read.digest, read.info.Size(), "sha256:"+read.digest
		if c.fresh(ctx, file, read, want, e) {
			judgeText(file, read, want, e)
		}
	}
}

// fresh applies fresh_for, which also gives the revision that the file is evidence for.
func (c *Checks) fresh(ctx context.Context, file goal.File, read content, want expectation, e *evidence) bool {
	if file.FreshFor == "" {
		return true
	}
	dir, _, err := c.limits.locate(file.FreshFor)
	if err != nil {
		e.cannotTell(activities.CheckRefused, "%v", err)
		return false
	}
	at, err := revision(ctx, dir)
	if err != nil {
		e.cannotTell(activities.CheckNoRevision, "%v", err)
		return false
	}
	e.Revision = at
	var own []string
	for _, path := range append(want.artifacts, file.Path) {
		if real, _, err := c.limits.locate(path); err == nil {
			own = append(own, real)
		}
	}
	changed, what, err := newestChange(ctx, dir, own)
	if err != nil {
		e.cannotTell(activities.CheckNoRevision, "%v", err)
		return false
	}
	if read.info.ModTime().Before(changed) {
		e.fail(activities.CheckStaleArtifact, "%s was written %s, before %s changed %s", filepath.Base(file.Path),
			read.info.ModTime().UTC().Format(time.RFC3339), what, changed.UTC().Format(time.RFC3339))
		return false
	}
	return true
}

func judgeText(file goal.File, read content, want expectation, e *evidence) {
	if file.SHA256 != "" && file.SHA256 != read.digest {
		e.fail(activities.CheckDigestMismatch, "the digest is sha256:%.12s…, not %.12s…", read.digest, file.SHA256)
		return
	}
	if !read.whole && file.Contains+file.RunID+file.Total != "" {
		e.cannotTell(activities.CheckTooLarge, "the file has %d bytes; its rules look into at most %d", read.info.Size(), maxText)
		return
	}
	if file.Contains != "" && !strings.Contains(string(read.text), file.Contains) {
		e.fail(activities.CheckTextMissing, "the file does not contain %q", file.Contains)
		return
	}
	if file.RunID != "" && !ofThisRun(file.RunID, read.text, want.runIDs, e) {
		return
	}
	if file.Total != "" {
		total, err := sum(file.Total, read.text)
		e.Total = &total
		switch {
		case err != nil:
			e.Total = nil
			e.fail(activities.CheckTotalMissing, "%v", err)
			return
		case want.known && total < want.baseline:
			e.fail(activities.CheckTotalShrunk, "the total is %d; it was %d at the start", total, want.baseline)
			return
		case total < 1:
			e.fail(activities.CheckTotalMissing, "the total is %d", total)
			return
		}
	}
	e.pass(fmt.Sprintf("%d bytes, sha256:%.12s…", read.info.Size(), read.digest))
}

// ofThisRun applies run_id.
func ofThisRun(pattern string, text []byte, runIDs []string, e *evidence) bool {
	re, err := regexp.Compile(pattern)
	if err != nil {
		e.cannotTell(activities.CheckCannotRun, "run_id: %v", err)
		return false
	}
	found := re.FindAllSubmatch(text, -1)
	if len(found) == 0 {
		e.fail(activities.CheckForeignRun, "the file does not say which run it is from (%s)", pattern)
		return false
	}
	for _, match := range found {
		if re.NumSubexp() > 0 && !slices.Contains(runIDs, string(match[1])) {
			e.fail(activities.CheckForeignRun, "the file is from run %.80q, not from this one", match[1])
			return false
		}
	}
	return true
}

// sum adds up the counts that the group of a pattern matches.
func sum(pattern string, text []byte) (int64, error) {
	re, err := regexp.Compile(pattern)
	if err != nil || re.NumSubexp() != 1 {
		return 0, fmt.Errorf("total: %s is no regular expression with one group", pattern)
	}
	found := re.FindAllSubmatch(text, -1)
	if len(found) == 0 {
		return 0, fmt.Errorf("nothing in the file matches the total %s", pattern)
	}
	var total int64
	for _, match := range found {
		digits := strings.NewReplacer(",", "", "_", "").Replace(string(match[1]))
		n, err := strconv.ParseInt(digits, 10, 32)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("the total %.40q is no count", match[1])
		}
		total += n
	}
	return total, nil
}

// total is the count that a file shows now.
func (c *Checks) total(ctx context.Context, file goal.File) (total int64, found bool) {
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	read, err := c.read(ctx, file.Path)
	if err != nil || !read.whole {
		return 0, false
	}
	total, err = sum(file.Total, read.text)
	return total, err == nil
}

func (c *Checks) lstat(path string) (fs.FileInfo, error) {
	real, root, err := c.limits.locate(path)
	if err != nil {
		return nil, err
	}
	held, rel, err := openRoot(root, real)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	return held.Lstat(rel)
}

// read reads a file within the roots. Between following its links and opening it nobody can lead the way out of the root.
func (c *Checks) read(ctx context.Context, path string) (content, error) {
	real, root, err := c.limits.locate(path)
	if err != nil {
		return content{}, err
	}
	held, rel, err := openRoot(root, real)
	if err != nil {
		return content{}, err
	}
	defer held.Close()
	// Without blocking: a named pipe would wait for its other end.
	f, err := held.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return content{}, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return content{}, err
	}
	if !before.Mode().IsRegular() {
		return content{}, errNoFile
	}
	return readAll(ctx, f, before)
}

func openRoot(root, real string) (*os.Root, string, error) {
	rel, err := filepath.Rel(root, real)
	if err != nil {
		return nil, "", err
	}
	held, err := os.OpenRoot(root)
	return held, rel, err
}

func readAll(ctx context.Context, f *os.File, before fs.FileInfo) (content, error) {
	hash, text := sha256.New(), make([]byte, 0, min(before.Size(), maxText))
	buffer := make([]byte, 256<<10)
	for {
		if err := context.Cause(ctx); err != nil {
			return content{}, err
		}
		n, err := f.Read(buffer)
		hash.Write(buffer[:n])
		text = append(text, buffer[:min(n, maxText-len(text))]...)
		if err == io.EOF {
			break
		} else if err != nil {
			return content{}, err
		}
	}
	after, err := f.Stat()
	if err != nil {
		return content{}, err
	}
	if after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return content{}, errChanged
	}
	return content{info: after, digest: hex.EncodeToString(hash.Sum(nil)), text: text, whole: after.Size() == int64(len(text))}, nil
}
