package app

import (
	"errors"
	"fmt"
	"os"
	"time"

	"ashlar/gateway"

	"github.com/goccy/go-yaml"
)

// Config is ashlar.yaml.
type Config struct {
	Data     string                   `yaml:"data"`   // the data directory
	Listen   string                   `yaml:"listen"` // address of the HTTP listener
	Debug    string                   `yaml:"debug"`  // address of the listener for profiles; empty: none
	Cache    Bytes                    `yaml:"cache"`  // for stored rows, shared by all networks
	Networks map[string]NetworkConfig `yaml:"networks"`
	Limits   Limits                   `yaml:"limits"`
	Origins  []string                 `yaml:"origins"` // whose pages may call; "*" for all
}

// NetworkConfig is one network of ashlar.yaml.
type NetworkConfig struct {
	Hosts []string `yaml:"hosts"` // host names that the network is served at
}

// Limits bound what one request may ask for.
type Limits struct {
	Body       Bytes         `yaml:"body"`        // of a request
	BatchCalls int           `yaml:"batch_calls"` // calls in one batch
	BatchBytes Bytes         `yaml:"batch_bytes"` // of the answer to a batch
	Time       time.Duration `yaml:"time"`        // to answer a request
}

// DefaultConfig is what holds where ashlar.yaml and the command line say nothing.
func DefaultConfig() Config {
	return Config{
		Listen:  "127.0.0.1:8545",
		Cache:   128 << 20,
		Origins: []string{gateway.AnyOrigin},
		Limits: Limits{
			Body: gateway.DefaultBodyBytes, BatchCalls: 1000, BatchBytes: 25_000_000, Time: gateway.DefaultRequestTime,
		},
	}
}

// LoadConfig reads ashlar.yaml over the defaults. Its errors name the file and the
// line, and what was expected there.
func LoadConfig(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return DefaultConfig(), fmt.Errorf("configuration: %w", err)
	}
	return parseConfig(path, text)
}

// parseConfig reads the text of the file path.
func parseConfig(path string, text []byte) (Config, error) {
	config := DefaultConfig()
	if err := checkShape(path, text); err != nil {
		return config, err
	}
	if err := yaml.UnmarshalWithOptions(text, &config, yaml.Strict()); err != nil {
		return config, fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, true))
	}
	for _, rule := range []struct {
		path  string
		check func() error
	}{
		{"$.cache", func() error { return atLeast(int64(config.Cache), 1<<20, "bytes") }},
		{"$.limits.body", func() error { return atLeast(int64(config.Limits.Body), 1024, "bytes") }},
		{"$.limits.batch_calls", func() error { return atLeast(int64(config.Limits.BatchCalls), 1, "calls") }},
		{"$.limits.batch_bytes", func() error { return atLeast(int64(config.Limits.BatchBytes), 1024, "bytes") }},
		{"$.limits.time", func() error { return atLeast(int64(config.Limits.Time/time.Millisecond), 1, "ms") }},
		{"$.networks", func() error { return checkNetworks(config.Networks) }},
	} {
		if err := rule.check(); err != nil {
			return config, fmt.Errorf("%s: %w", place(path, text, rule.path), err)
		}
	}
	return config, nil
}

func atLeast(got, least int64, unit string) error {
	if got < least {
		return fmt.Errorf("%d %s is too little: expected at least %d", got, unit, least)
	}
	return nil
}

func checkNetworks(networks map[string]NetworkConfig) error {
	var problems []error
	for name := range networks {
		problems = append(problems, checkNetworkName(name))
	}
	return errors.Join(problems...)
}

// place names the line of an entry, as "file:line: entry".
func place(file string, text []byte, entry string) string {
	path, err := yaml.PathString(entry)
	if err != nil {
		return file
	}
	var found struct{ line int }
	if annotated, err := path.AnnotateSource(text, false); err == nil {
		for _, line := range splitLines(annotated) {
			if _, err := fmt.Sscanf(line, "> %d", &found.line); err == nil {
				return fmt.Sprintf("%s:%d: %s", file, found.line, entry[2:])
			}
		}
	}
	return fmt.Sprintf("%s: %s", file, entry[2:])
}

func splitLines(text []byte) []string {
	var lines []string
	begin := 0
	for i, b := range text {
		if b == '\n' {
			lines = append(lines, string(text[begin:i]))
			begin = i + 1
		}
	}
	return append(lines, string(text[begin:]))
}

// Bytes is a number of bytes, written plainly or with a unit: 512KiB, 64MiB, 2GiB.
type Bytes int64

// UnmarshalYAML implements yaml.BytesUnmarshaler.
func (b *Bytes) UnmarshalYAML(text []byte) error {
	var number int64
	var unit string
	n, _ := fmt.Sscanf(string(text), "%d%s", &number, &unit)
	size, ok := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
	if n == 0 || !ok || number < 0 || number > (1<<62)/size {
		return fmt.Errorf("%q is no size: expected a number of bytes, such as 1048576, 512KiB, 64MiB or 2GiB", text)
	}
	*b = Bytes(number * size)
	return nil
}
