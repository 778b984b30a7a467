package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// messages are texts by name of language, then by key.
type messages map[string]map[string]string

// readJSON reads an object of messages; those that are no text, such as plural
// forms, are left out.
func readJSON(path, lang string) (messages, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for k, v := range all {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return messages{lang: out}, nil
}

// readYAML reads a tree of messages under the name of the language; the key is
// the path with dots, list members by number. It reads nodes, because some
// files define a key twice.
func readYAML(path, lang string) (messages, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	out := map[string]string{}
	if len(doc.Content) == 1 && len(doc.Content[0].Content) == 2 {
		flatten(out, "", doc.Content[0].Content[1])
	}
	return messages{lang: out}, nil
}

func flatten(out map[string]string, key string, n *yaml.Node) {
	join := func(part string) string {
		if key == "" {
			return part
		}
		return key + "." + part
	}
	switch n.Kind {
	case yaml.ScalarNode:
		out[key] = n.Value
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			flatten(out, join(n.Content[i].Value), n.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, m := range n.Content {
			flatten(out, join(strconv.Itoa(i)), m)
		}
	}
}

var phpLine = regexp.MustCompile(`(?m)^\$labels\['([^']+)'\]\s*=\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)");`)

// readPHP reads assignments to $labels.
func readPHP(path, lang string) (messages, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, m := range phpLine.FindAllStringSubmatch(string(data), -1) {
		out[m[1]] = strings.NewReplacer(`\'`, `'`, `\"`, `"`, `\\`, `\`).Replace(m[2] + m[3])
	}
	return messages{lang: out}, nil
}

var poEntry = regexp.MustCompile(`(?m)^msgctxt "(.+)"\nmsgid "(.*)"\nmsgstr "(.*)"$`)

// readPO reads entries with a context, which is the key after the name of the
// program's part. The English texts stand beside each.
func readPO(path, lang string) (messages, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	part := filepath.Base(filepath.Dir(filepath.Dir(path)))
	out := messages{lang: {}, "en": {}}
	for _, m := range poEntry.FindAllStringSubmatch(string(data), -1) {
		out[lang][part+"/"+m[1]] = m[3]
		out["en"][part+"/"+m[1]] = m[2]
	}
	return out, nil
}
