package sites

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed *.yaml
var assets embed.FS

// maxProfile bounds the size of one profile file.
const maxProfile = 1 << 20

// Registry holds every known site. It is safe for concurrent use.
type Registry struct {
	dir string

	mu      sync.Mutex
	sites   map[string]*Site
	seen    string // fingerprint of the folder that was read last
	problem error  // what was wrong there
}

// Load reads the embedded profiles and then those of a folder, which override them by their site key or add to them. An
// empty dir, or one that does not exist, adds nothing. Every problem of every file is reported, with file, line and reason.
func Load(dir string) (*Registry, error) {
	r := &Registry{dir: dir}
	var err error
	if dir != "" {
		if r.seen, err = fingerprint(dir); err != nil {
			return nil, err
		}
	}
	r.sites, err = load(dir)
	return r, err
}

func load(dir string) (map[string]*Site, error) {
	builtin, err := readAll(assets, "embedded ")
	if err != nil {
		return nil, err
	}
	own := map[string]*document{}
	if dir != "" {
		if own, err = readAll(os.DirFS(dir), dir+string(filepath.Separator)); err != nil {
			return nil, err
		}
	}
	l := loader{builtin: builtin, own: own}
	found := map[string]*Site{}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(l.names())) {
		site, err := l.site(name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		found[name] = site
	}
	return found, errors.Join(problems...)
}

// Site returns the profile of a name.
func (r *Registry) Site(name string) (*Site, error) {
	r.mu.Lock()
	site, ok := r.sites[name]
	r.mu.Unlock()
	if ok {
		return site, nil
	}
	return nil, fmt.Errorf("no site profile %q (known: %s)", name, strings.Join(r.Names(), ", "))
}

// Names of all sites, sorted.
func (r *Registry) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.sites))
}

// document is one profile file. Its nodes remember their lines.
type document struct {
	file    string
	root    *yaml.Node
	name    string
	extends string
}

func readAll(from fs.FS, prefix string) (map[string]*document, error) {
	docs := map[string]*document{}
	entries, err := fs.ReadDir(from, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return docs, nil
	}
	if err != nil {
		return nil, fmt.Errorf("site profiles: %w", err)
	}
	var problems []error
	for _, entry := range entries {
		if !isProfile(entry) {
			continue
		}
		doc, err := read(from, entry.Name(), prefix+entry.Name())
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if other := docs[doc.name]; other != nil {
			problems = append(problems, fmt.Errorf("%s: site %q stands in %s too", doc.file, doc.name, other.file))
			continue
		}
		docs[doc.name] = doc
	}
	return docs, errors.Join(problems...)
}

// read decodes one file strictly, without asking yet whether it is complete.
func read(from fs.FS, name, file string) (*document, error) {
	f, err := from.Open(name)
	if err != nil {
		return nil, fmt.Errorf("site profile: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxProfile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(data) > maxProfile {
		return nil, fmt.Errorf("%s: longer than %d bytes", file, maxProfile)
	}
	var site Site
	strict := yaml.NewDecoder(bytes.NewReader(data))
	strict.KnownFields(true)
	if err := strict.Decode(&site); err != nil {
		return nil, located(file, err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, located(file, err)
	}
	if err := strict.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: want one YAML document", file)
	}
	if site.Name == "" {
		return nil, fmt.Errorf("%s:1: the key site is missing", file)
	}
	return &document{file: file, root: root.Content[0], name: site.Name, extends: site.Extends}, nil
}

// located puts the file before every "line n: …" of a decoding error.
func located(file string, err error) error {
	var typeErr *yaml.TypeError
	texts := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if errors.As(err, &typeErr) {
		texts = typeErr.Errors
	}
	problems := make([]error, len(texts))
	for i, text := range texts {
		if line, reason, ok := strings.Cut(strings.TrimPrefix(text, "line "), ": "); ok && line != text && isNumber(line) {
			problems[i] = fmt.Errorf("%s:%s: %s", file, line, reason)
		} else {
			problems[i] = fmt.Errorf("%s: %s", file, text)
		}
	}
	return errors.Join(problems...)
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

type loader struct {
	builtin, own map[string]*document
}

func (l loader) names() map[string]*document {
	all := maps.Clone(l.builtin)
	maps.Copy(all, l.own)
	return all
}

// site resolves what a profile extends, decodes and checks the whole.
func (l loader) site(name string) (*Site, error) {
	doc := l.document(name)
	files := origin{}
	root, err := l.resolve(doc, files, nil)
	if err != nil {
		return nil, err
	}
	site := new(Site)
	if err := root.Decode(site); err != nil {
		return nil, located(doc.file, err)
	}
	site.Name = name
	site.complete()
	if err := site.check(places{root: root, files: files, file: doc.file}); err != nil {
		return nil, err
	}
	return site, site.seal()
}

// resolve lays a document over what it extends.
func (l loader) resolve(doc *document, files origin, seen []*document) (*yaml.Node, error) {
	if slices.Contains(seen, doc) {
		return nil, fmt.Errorf("%s: extends goes round in a circle", doc.file)
	}
	files.note(doc.root, doc.file)
	if doc.extends == "" {
		return doc.root, nil
	}
	base := l.own[doc.extends]
	if base == nil || base == doc {
		base = l.builtin[doc.extends]
	}
	if base == nil || base == doc {
		return nil, fmt.Errorf("%s: extends: no site profile %q", doc.file, doc.extends)
	}
	below, err := l.resolve(base, files, append(seen, doc))
	if err != nil {
		return nil, err
	}
	return files.merge(below, doc.root), nil
}

// merge lays one node over another: mappings key by key, everything else as a whole. A merged mapping stands where the upper
// one does.
func (o origin) merge(below, over *yaml.Node) *yaml.Node {
	if below.Kind != yaml.MappingNode || over.Kind != yaml.MappingNode {
		return over
	}
	merged := *below
	merged.Line = over.Line
	o[&merged] = o[over]
	merged.Content = slices.Clone(below.Content)
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, value := over.Content[i], over.Content[i+1]
		at := find(merged.Content, key.Value)
		if at < 0 {
			merged.Content = append(merged.Content, key, value)
			continue
		}
		merged.Content[at], merged.Content[at+1] = key, o.merge(merged.Content[at+1], value)
	}
	return &merged
}

// find is the index of a key among the keys and values of a mapping.
func find(content []*yaml.Node, key string) int {
	for i := 0; i+1 < len(content); i += 2 {
		if content[i].Value == key {
			return i
		}
	}
	return -1
}

// origin tells from which file a node came.
type origin map[*yaml.Node]string

func (o origin) note(n *yaml.Node, file string) {
	o[n] = file
	for _, child := range n.Content {
		o.note(child, file)
	}
}
