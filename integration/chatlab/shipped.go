package chatlab

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

//go:embed scenarios/*.yaml
var shipped embed.FS

// ScenarioNames lists the scenarios that come with the site.
func ScenarioNames() []string {
	files, err := fs.Glob(shipped, "scenarios/*.yaml")
	if err != nil {
		panic(err) // constant pattern: cannot fail
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(file, "scenarios/"), ".yaml")
	}
	return files
}

// LoadScenario reads a scenario by the name of a shipped one, or from a file: a name with a slash or a dot is a path.
func LoadScenario(name string) (Scenario, error) {
	var data []byte
	var err error
	if strings.ContainsAny(name, "/.") {
		data, err = os.ReadFile(name)
	} else if data, err = shipped.ReadFile("scenarios/" + name + ".yaml"); err != nil {
		err = fmt.Errorf("no scenario %q (known: %s; a file is named with its path)", name, strings.Join(ScenarioNames(), ", "))
	}
	if err != nil {
		return Scenario{}, fmt.Errorf("chatlab: %w", err)
	}
	sc, err := ParseScenario(data)
	if err != nil {
		return Scenario{}, fmt.Errorf("%s: %w", name, err)
	}
	return sc, nil
}
