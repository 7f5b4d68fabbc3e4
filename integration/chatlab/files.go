package chatlab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// writeFile replaces a file below Options.Dir.
type writeFile struct {
	Path    Template `yaml:"path"`
	Content Template `yaml:"content"`
}

func (w *writeFile) UnmarshalYAML(n *yaml.Node) error {
	type plain writeFile
	return strict(n, (*plain)(w))
}

func (w *writeFile) play(p *performance) error {
	name, err := w.Path.render(p.facts)
	if err != nil {
		return err
	}
	content, err := w.Content.render(p.facts)
	if err != nil {
		return err
	}
	return replaceFile(p.facts.Dir, name, content)
}

// replaceFile writes a file below dir through a temporary one, so that a reader never sees half of it. The name may be
// relative to dir or stand inside it.
func replaceFile(dir, name, content string) error {
	if filepath.IsAbs(name) {
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return fmt.Errorf("write_file: %w", err)
		}
		name = relative
	}
	name = filepath.ToSlash(name)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("write_file: %w", err)
	}
	defer root.Close()
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return fmt.Errorf("write_file %s: %w", name, err)
	}
	part := name + ".part"
	file, err := root.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write_file %s: %w", name, err)
	}
	_, err = file.WriteString(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write_file %s: %w", name, err)
	}
	return root.Rename(part, name)
}

// run starts a program in Options.Dir and waits for it. An exit code other than 0 is a violation.
type run struct {
	Argv    []Template        `yaml:"argv"`
	Env     map[string]string `yaml:"env"` // beside PATH, HOME and TMPDIR
	Timeout time.Duration     `yaml:"timeout"`
}

func (r *run) UnmarshalYAML(n *yaml.Node) error {
	type plain run
	r.Timeout = time.Minute
	var err error
	if n.Kind == yaml.SequenceNode {
		err = n.Decode(&r.Argv)
	} else {
		err = strict(n, (*plain)(r))
	}
	if err == nil && len(r.Argv) == 0 {
		err = fmt.Errorf("line %d: run needs an argument vector", n.Line)
	}
	return err
}

func (r *run) play(p *performance) error {
	argv := make([]string, len(r.Argv))
	for i, argument := range r.Argv {
		var err error
		if argv[i], err = argument.render(p.facts); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(p.ctx, r.Timeout)
	defer cancel()
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Dir = p.facts.Dir
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	for name, value := range r.Env {
		command.Env = append(command.Env, name+"="+value)
	}
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w: %s", strings.Join(argv, " "), err, lastBytes(output, 500))
	}
	return nil
}

func lastBytes(b []byte, n int) string { return string(b[max(0, len(b)-n):]) }
