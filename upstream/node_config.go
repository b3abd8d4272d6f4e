package upstream

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"ashlar/endpoint"
)

// keyPlace is where a node's key stands in its URL and headers.
const keyPlace = "{key}"

// Node is the configuration of one node.
type Node struct {
	URL     string   `yaml:"url"`      // http or https; {key} stands for the key
	KeyFile string   `yaml:"key_file"` // file with the key
	KeyEnv  string   `yaml:"key_env"`  // environment variable with the key
	Headers []string `yaml:"headers"`  // such as "Authorization: Bearer {key}"
	Backup  bool     `yaml:"backup"`   // asked only if no other node can answer

	Rate  float64  `yaml:"rate"`  // units per second; 0: no limit
	Burst int      `yaml:"burst"` // units that may be used at once after a pause; 0: those of a second
	Daily uint64   `yaml:"daily"` // units per day (UTC); 0: no limit
	Units []string `yaml:"units"` // units of a call, such as "eth_getLogs=75"; others take one
}

// Nodes are the nodes of a network, written as one URL, one mapping, or a list of both.
type Nodes []Node

// UnmarshalYAML implements yaml.InterfaceUnmarshaler.
func (n *Nodes) UnmarshalYAML(decode func(any) error) error {
	var list []entry
	if decode(&list) == nil {
		*n = nil
		for _, one := range list {
			*n = append(*n, Node(one))
		}
		return nil
	}
	var one entry
	if err := one.UnmarshalYAML(decode); err != nil {
		return err
	}
	*n = Nodes{Node(one)}
	return nil
}

// entry is a Node as it is written: a URL or a mapping.
type entry Node

// UnmarshalYAML implements yaml.InterfaceUnmarshaler.
func (e *entry) UnmarshalYAML(decode func(any) error) error {
	if decode(&e.URL) == nil {
		return nil
	}
	var whole Node
	if err := decode(&whole); err != nil || whole.URL == "" {
		return errors.New("expected the URL of a node, a mapping with its url, or a list of them")
	}
	*e = entry(whole)
	return nil
}

// Check returns what is wrong with the nodes. An error names a node by its position, since
// its URL may hold a key.
func (n Nodes) Check() error {
	for i := range n {
		err := n[i].check()
		if first := slices.IndexFunc(n[:i], n[i].same); err == nil && first >= 0 {
			err = fmt.Errorf("the node of number %d again (want each node once, since a quorum counts nodes)", first+1)
		}
		if err != nil {
			return fmt.Errorf("number %d of %d: %w", i+1, len(n), err)
		}
	}
	return nil
}

// CheckFiles returns what is wrong with the files and variables that hold the keys.
func (n Nodes) CheckFiles() error {
	for i := range n {
		if _, err := n[i].key(); err != nil {
			return fmt.Errorf("number %d of %d: %w", i+1, len(n), err)
		}
	}
	return nil
}

// same reports whether another entry asks the same node in the same way. Two keys of one
// provider are two nodes.
func (n *Node) same(other Node) bool {
	own, err := n.parseURL()
	its, otherErr := other.parseURL()
	if err != nil || otherErr != nil {
		return false
	}
	return endpoint.Canonical(own) == endpoint.Canonical(its) && n.KeyFile == other.KeyFile && n.KeyEnv == other.KeyEnv && slices.Equal(n.Headers, other.Headers)
}

func (n *Node) check() error {
	if _, err := n.parseURL(); err != nil {
		return err
	}
	switch {
	case n.KeyFile != "" && n.KeyEnv != "":
		return errors.New("both key_file and key_env are set (want one of them)")
	case n.KeyFile+n.KeyEnv != "" && !n.usesKey():
		return fmt.Errorf("the key is not used: expected %s in url or headers", keyPlace)
	case n.KeyFile+n.KeyEnv == "" && n.usesKey():
		return fmt.Errorf("%s without a key: expected key_file or key_env", keyPlace)
	case n.Rate < 0 || n.Burst < 0:
		return errors.New("rate or burst is negative (want 0 for no limit, or more)")
	}
	if _, err := n.headers("key"); err != nil {
		return err
	}
	_, err := n.units()
	return err
}

// parseURL parses the node's URL with the word key in place of the key.
func (n *Node) parseURL() (*url.URL, error) {
	return endpoint.Parse(strings.ReplaceAll(n.URL, keyPlace, "key"), "http", "https")
}

func (n *Node) usesKey() bool {
	return strings.Contains(n.URL, keyPlace) || strings.Contains(strings.Join(n.Headers, "\n"), keyPlace)
}

// key reads the node's key, which is empty if the node has none.
func (n *Node) key() (string, error) {
	switch {
	case n.KeyEnv != "":
		if key := os.Getenv(n.KeyEnv); key != "" {
			return key, nil
		}
		return "", fmt.Errorf("environment variable %s is empty (want the node's key)", n.KeyEnv)
	case n.KeyFile != "":
		text, err := os.ReadFile(n.KeyFile)
		if err != nil {
			return "", fmt.Errorf("key_file: %w", err)
		}
		if key := strings.TrimSpace(string(text)); key != "" {
			return key, nil
		}
		return "", fmt.Errorf("key_file: %s is empty (want the node's key)", n.KeyFile)
	}
	return "", nil
}

// headers returns the HTTP headers with the key in its place.
func (n *Node) headers(key string) (http.Header, error) {
	all := make(http.Header)
	for _, line := range n.Headers {
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(strings.ReplaceAll(value, keyPlace, key))
		if !ok || name == "" || value == "" || strings.ContainsAny(name+value, "\r\n") {
			return nil, errors.New(`invalid header (want a text such as "Authorization: Bearer {key}")`)
		}
		all.Add(name, value)
	}
	return all, nil
}

// Template returns a GET request with the URL and the headers that the node wants, and its key.
func (n *Node) Template() (*http.Request, error) {
	key, err := n.key()
	if err != nil {
		return nil, err
	}
	headers, err := n.headers(key)
	if err != nil {
		return nil, err
	}
	template, err := http.NewRequest(http.MethodGet, strings.ReplaceAll(n.URL, keyPlace, key), nil)
	if err != nil {
		return nil, endpoint.WithoutURL(err)
	}
	template.Header = headers
	return template, nil
}

// units returns the units of a call by method.
func (n *Node) units() (map[string]int, error) {
	all := make(map[string]int)
	for _, text := range n.Units {
		method, value, _ := strings.Cut(text, "=")
		count, err := strconv.Atoi(value)
		if err != nil || count < 1 || method == "" {
			return nil, fmt.Errorf(`invalid units %q (want a text such as "eth_getLogs=75")`, text)
		}
		all[method] = count
	}
	return all, nil
}

// burst returns the units that may be used at once.
func (n *Node) burst() int { return cmp.Or(n.Burst, max(1, int(n.Rate))) }
