package sites

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
)

// Checked is what one profile file would do in a folder of profiles.
type Checked struct {
	File    string `json:"file"`
	Name    string `json:"site"`
	Extends string `json:"extends,omitempty"`
	Digest  string `json:"digest"`
	// Replaces is the file of the profile that this one takes the place of; empty for a new site.
	Replaces string `json:"replaces,omitempty"`
	// Overrides are the keys whose values differ from those of the profile that it replaces, or else extends. An index
	// begins with 0.
	Overrides []string `json:"overrides"`
	// Affects are the folder's other profiles that extend this site.
	Affects []string `json:"affects,omitempty"`
}

// CheckFile checks one profile file as if it stood in the folder dir beside what is there. Every problem is reported, with
// file, line and reason.
func CheckFile(file, dir string) (*Checked, error) {
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
	doc, err := read(os.DirFS(filepath.Dir(file)), filepath.Base(file), file)
	if err != nil {
		return nil, err
	}
	with := loader{builtin: builtin, own: maps.Clone(own)}
	with.own[doc.name] = doc
	site, err := with.site(doc.name)
	if err != nil {
		return nil, err
	}
	out := &Checked{File: file, Name: site.Name, Extends: doc.extends, Digest: site.Digest(), Overrides: []string{}}
	if old := own[doc.name]; old != nil && sameFile(old.file, file) {
		delete(own, doc.name)
	}
	before := loader{builtin: builtin, own: own}
	basis := doc.extends
	if old := before.document(doc.name); old != nil {
		out.Replaces, basis = old.file, doc.name
	}
	if before.document(basis) != nil {
		base, err := before.site(basis)
		if err != nil {
			return nil, err
		}
		if out.Overrides, err = differences(base, site); err != nil {
			return nil, err
		}
	}
	out.Affects, err = with.extending(doc.name)
	return out, err
}

func sameFile(a, b string) bool {
	left, err := os.Stat(a)
	right, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(left, right)
}

// document is the profile file that counts for a name.
func (l loader) document(name string) *document {
	if doc := l.own[name]; doc != nil {
		return doc
	}
	return l.builtin[name]
}

// extending are the sites of the folder that extend one, in their sorted order. One of them that is no longer good is an error.
func (l loader) extending(name string) ([]string, error) {
	var names []string
	var problems []error
	for _, other := range slices.Sorted(maps.Keys(l.own)) {
		if other == name || !l.builtOn(other, name) {
			continue
		}
		names = append(names, other)
		if _, err := l.site(other); err != nil {
			problems = append(problems, err)
		}
	}
	return names, errors.Join(problems...)
}

// builtOn tells whether a profile extends another, directly or not.
func (l loader) builtOn(name, base string) bool {
	for range len(l.own) + len(l.builtin) {
		doc := l.document(name)
		if doc == nil || doc.extends == "" || doc.extends == name {
			return false
		}
		if name = doc.extends; name == base {
			return true
		}
	}
	return false
}

// differences are the keys of two profiles whose values are not the same.
func differences(a, b *Site) ([]string, error) {
	values := [2]any{}
	for i, site := range []*Site{a, b} {
		data, err := json.Marshal(site)
		if err == nil {
			err = json.Unmarshal(data, &values[i])
		}
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", site.Name, err)
		}
	}
	keys := map[string]bool{}
	differ("", values[0], values[1], keys)
	delete(keys, "site")
	return slices.Sorted(maps.Keys(keys)), nil
}

func differ(path string, a, b any, into map[string]bool) {
	if reflect.DeepEqual(a, b) {
		return
	}
	left, isMap := a.(map[string]any)
	right, both := b.(map[string]any)
	if isMap && both {
		for key := range maps.Keys(merged(left, right)) {
			differ(join(path, key), left[key], right[key], into)
		}
		return
	}
	one, isList := a.([]any)
	two, both := b.([]any)
	if isList && both && path == "states" && len(one) == len(two) {
		for i := range one {
			differ(join(path, strconv.Itoa(i)), one[i], two[i], into)
		}
		return
	}
	into[path] = true
}

func merged(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
