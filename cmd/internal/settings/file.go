package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// entry is a value in a configuration file.
type entry struct {
	value string
	line  int
}

// maxFile is the largest size of a configuration file. A larger file is probably not a
// configuration file.
const maxFile = 1 << 20

// FileEnv is the name of the environment variable with the path of the configuration file.
const FileEnv = "SUPERSTEP_CONFIG"

// Path returns the path of the configuration file to read. It returns the first of these:
// given, unless it is ""; the path in the environment variable FileEnv; the user's file if it
// exists; the file /etc/superstep/config.yaml if it exists; and otherwise "". lookup looks up
// environment variables.
func Path(given string, lookup func(string) (string, bool)) string {
	if given != "" {
		return given
	}
	if path, ok := lookup(FileEnv); ok && path != "" {
		return path
	}
	var candidates []string
	if dir, ok := lookup("XDG_CONFIG_HOME"); ok && filepath.IsAbs(dir) {
		candidates = append(candidates, filepath.Join(dir, "superstep", "config.yaml"))
	} else if home, ok := lookup("HOME"); ok && filepath.IsAbs(home) {
		candidates = append(candidates, filepath.Join(home, ".config", "superstep", "config.yaml"))
	}
	for _, path := range append(candidates, "/etc/superstep/config.yaml") {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// Read reads the configuration file at path. If path is "", there is no file, and the settings
// have only values from the environment, which lookup looks up.
func Read(path string, lookup func(string) (string, bool)) (*Settings, error) {
	s := &Settings{path: path, lookup: lookup}
	if path == "" {
		return s, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("configuration file %s does not exist", path)
	}
	if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("configuration file %s: %w", path, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("configuration file %s has more than %d bytes: is it the right one?", path, maxFile)
	}
	if s.file, err = parse(data); err != nil {
		return nil, fmt.Errorf("configuration file %s: %w", path, err)
	}
	return s, nil
}

// parse returns key -> value for data, the content of a configuration file.
func parse(data []byte) (map[string]entry, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	entries := map[string]entry{}
	if len(doc.Content) == 0 {
		return entries, nil
	}
	if err := flatten(doc.Content[0], "", entries, 0); err != nil {
		return nil, err
	}
	return entries, nil
}

// maxDepth is the largest depth of nested maps. The keys of settings have two or three parts.
const maxDepth = 8

// flatten adds the values in node n to the map named into. key is the key of n, which is "" for
// the root, and depth is the number of nodes above n.
func flatten(n *yaml.Node, key string, into map[string]entry, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("line %d: maps are nested too deeply", n.Line)
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i]
			if name.Kind != yaml.ScalarNode || name.Value == "" {
				return fmt.Errorf("line %d: want the name of a setting", name.Line)
			}
			below := name.Value
			if key != "" {
				below = key + "." + name.Value
			}
			if err := flatten(n.Content[i+1], below, into, depth+1); err != nil {
				return err
			}
		}
		return nil
	case yaml.ScalarNode:
		return put(into, key, n.Value, n.Line)
	case yaml.SequenceNode:
		var parts []string
		for _, e := range n.Content {
			if e.Kind != yaml.ScalarNode {
				return fmt.Errorf("line %d: %s: want a list of plain values", e.Line, key)
			}
			parts = append(parts, e.Value)
		}
		return put(into, key, strings.Join(parts, ","), n.Line)
	}
	return fmt.Errorf("line %d: %s: want a value, a list or a map", n.Line, key)
}

func put(into map[string]entry, key, value string, line int) error {
	if key == "" {
		return fmt.Errorf("line %d: want settings such as \"jobmanager: {listen: ...}\", not a plain value", line)
	}
	if before, taken := into[key]; taken {
		return fmt.Errorf("line %d: %s is set in line %d already", line, key, before.line)
	}
	into[key] = entry{value, line}
	return nil
}
